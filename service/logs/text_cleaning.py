"""Converts a log's bytes to clean text for people and classifiers, line by line."""

import re

from classifiers.secrets.finder import PLACEHOLDER
from service.logs.excerpt import Window

# C0 control characters, which never occur in multi-byte UTF-8 sequences, except bell (it ends some terminal commands),
# backspace, tab, line feed, carriage return and escape.
_DROPPED = bytes(code for code in (*range(32), 127) if code not in {7, 8, 9, 10, 13, 27})
_UTF16_SHARE = 4
_ONE_SIDED = 0.9
_ANSI = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]"  # CSI: colours, cursor
    r"|\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|[PX^_][^\x1b\n]{0,4096}\x1b\\"  # DCS and similar sequences
    r"|[ -/]?[0-~])"
)
_SPACE = re.compile(r"\s")
_HEAD_CHARS = 1024
_SECRET_CHARS = 4096  # maximum length of a value for redaction
_KEY_BODY = re.compile(r"[A-Za-z0-9+/]{40,80}={0,2}\r?|[A-Za-z0-9+/]{1,80}={1,2}\r?|-----END [A-Z ]{1,40}-----\r?")
_KEY_LINES = 200
# A line of a key behind a prefix such as a time or a rank; a digest of hexadecimal digits is none.
_KEY_BODY_AT_END = re.compile(r"(?<=\s)(?![a-f0-9]{60,80}(?:\s|\Z))[A-Za-z0-9+/]{60,76}\s{0,2}\Z")
_BACKSPACES = re.compile(r"\x08+")
_PROGRESS = re.compile(r"\d%|\d(?:it|s|B|iB|MB|steps?)/s|\d(?:s|ms)/(?:it|step)|ETA|\[=*>?\.*\]|^\s*\d+/\d+")


def decode(data: bytes) -> str:
    """Decode UTF-8 (or UTF-16 if every other byte is null); invalid bytes become U+FFFD.

    Colour codes and other terminal commands are removed. Progress bars overwritten by carriage returns are removed,
    other overwritten text is kept. The number of lines does not change.
    """
    text = _utf16(data) if _is_utf16(data) else data.translate(None, _DROPPED).decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ANSI.sub("", text).replace("\x1b", "")
    if "\x07" in text:
        text = text.replace("\x07", "")
    if "\x08" in text:
        text = _BACKSPACES.sub("\r", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
        if "\r" in text:
            text = "\n".join(_overwritten(line) if "\r" in line else line for line in text.split("\n"))
    return text


def without_beginnings(text: str, window: Window) -> str:
    """Return a redacted window without a possible rest of a secret that began before the window.

    If the window begins within a line, the rest of that line is removed. Of a long line, the text up to the first white
    space after a kilobyte is removed (redaction saw that much context before the next word), or the maximum length of a
    secret if there is no white space. At the start of a line, only the body of a private key can continue.
    """
    if window.in_line:
        newline = text.find("\n", 0, _HEAD_CHARS + _SECRET_CHARS)
        if newline >= 0:
            return text[newline:]  # the removed line stays as an empty line, so line numbers do not change
        space = _SPACE.search(text, _HEAD_CHARS, _HEAD_CHARS + _SECRET_CHARS)
        return text[space.start() if space else _HEAD_CHARS + _SECRET_CHARS :]
    if window.cut:
        lines = text.split("\n", _KEY_LINES)
        for index, line in enumerate(lines[:_KEY_LINES]):
            rest = _without_key_body(line, within=index > 0)
            if rest == line:
                break
            lines[index] = rest
        return "\n".join(lines)
    return text


def _without_key_body(line: str, *, within: bool) -> str:
    """A line without the body of a private key; `within`: the line before was of a key, so a short one may end it."""
    if _KEY_BODY.fullmatch(line):
        return PLACEHOLDER
    if (found := _KEY_BODY_AT_END.search(line, max(len(line) - 80, 0))) is not None:
        return line[: found.start()] + PLACEHOLDER
    before, space, last = line.rstrip().rpartition(" ")
    if within and space and last.isascii() and _KEY_BODY.fullmatch(last):
        return f"{before} {PLACEHOLDER}"
    return line


def _overwritten(line: str) -> str:
    """Apply carriage returns to a line; messages printed between the steps of a progress bar are kept."""
    parts = [part for part in line.split("\r") if part.strip()]
    if not parts:
        return ""
    shown = [part for part in parts[:-1] if not _PROGRESS.search(part)]
    return " ".join([*dict.fromkeys(shown), parts[-1]])


def _is_utf16(data: bytes) -> bool:
    """Return whether every other byte is null, as in UTF-16 text of Latin letters."""
    nulls = data.count(0)
    if nulls <= len(data) // _UTF16_SHARE:
        return False
    even = data[::2].count(0)
    return max(even, nulls - even) > _ONE_SIDED * nulls and nulls < len(data)


def _utf16(data: bytes) -> str:
    """Decode UTF-16, with the byte order given by the null bytes; incomplete characters at the ends are dropped."""
    little = data[1::2].count(0) >= data[::2].count(0)
    text = data[: len(data) & ~1].decode("utf-16-le" if little else "utf-16-be", "replace").lstrip("\ufeff")
    return text.encode("utf-8", "replace").translate(None, _DROPPED).decode()
