"""A log's bytes as text that people and classifiers can read, line for line."""

import re

from classifiers.redaction import PLACEHOLDER
from service.logs.excerpt import Window

# C0 controls, which stand in no multi-byte UTF-8 letter, without bell (it ends some terminal commands), backspace,
# tab, line feed, carriage return and escape.
_DROPPED = bytes(code for code in (*range(32), 127) if code not in {7, 8, 9, 10, 13, 27})
_UTF16_SHARE = 4
_ONE_SIDED = 0.9
_ANSI = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]"  # CSI: colours, cursor
    r"|\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|[PX^_][^\x1b\n]{0,4096}\x1b\\"  # DCS and its like
    r"|[ -/]?[0-~])"
)
_SPACE = re.compile(r"\s")
_HEAD_CHARS = 1024
_SECRET_CHARS = 4096  # as long as redaction takes a value to be
_KEY_BODY = re.compile(r"[A-Za-z0-9+/]{40,80}={0,2}\r?|[A-Za-z0-9+/]{1,80}={1,2}\r?|-----END [A-Z ]{1,40}-----\r?")
_KEY_LINES = 200
_BACKSPACES = re.compile(r"\x08+")
_PROGRESS = re.compile(r"\d%|\d(?:it|s|B|iB|MB|steps?)/s|\d(?:s|ms)/(?:it|step)|ETA|\[=*>?\.*\]|^\s*\d+/\d+")


def decode(data: bytes) -> str:
    """Text of the bytes: UTF-8 (else UTF-16 where every other byte is null), what is neither as U+FFFD.

    Colour codes and other terminal commands go; of what carriage returns overwrite, what is no progress bar stays. The
    number of lines does not change.
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
    """A redacted window without what may be the rest of a secret that began before it.

    Within a line that is the rest of the line, or of a long one everything up to the first white space after a kilobyte
    (so much stood before that word when secrets were looked for), where there is none as much as a secret is long. At
    the start of a line only the body of a private key can go on.
    """
    if window.in_line:
        newline = text.find("\n", 0, _HEAD_CHARS + _SECRET_CHARS)
        if newline >= 0:
            return text[newline:]  # the line that was cut is empty now, the next one keeps its number
        space = _SPACE.search(text, _HEAD_CHARS, _HEAD_CHARS + _SECRET_CHARS)
        return text[space.start() if space else _HEAD_CHARS + _SECRET_CHARS :]
    if window.cut:
        lines = text.split("\n", _KEY_LINES)
        for index, line in enumerate(lines[:_KEY_LINES]):
            if not _KEY_BODY.fullmatch(line):
                break
            lines[index] = PLACEHOLDER
        return "\n".join(lines)
    return text


def _overwritten(line: str) -> str:
    """What a line shows after its carriage returns; messages printed between the steps of a progress bar stay."""
    parts = [part for part in line.split("\r") if part.strip()]
    if not parts:
        return ""
    told = [part for part in parts[:-1] if not _PROGRESS.search(part)]
    return " ".join([*dict.fromkeys(told), parts[-1]])


def _is_utf16(data: bytes) -> bool:
    """Whether null bytes stand at every other place, as they do in UTF-16 of Latin letters."""
    nulls = data.count(0)
    if nulls <= len(data) // _UTF16_SHARE:
        return False
    even = data[::2].count(0)
    return max(even, nulls - even) > _ONE_SIDED * nulls and nulls < len(data)


def _utf16(data: bytes) -> str:
    """Little or big endian by where the null bytes stand; half a letter at either end goes."""
    little = data[1::2].count(0) >= data[::2].count(0)
    text = data[: len(data) & ~1].decode("utf-16-le" if little else "utf-16-be", "replace").lstrip("\ufeff")
    return text.encode("utf-8", "replace").translate(None, _DROPPED).decode()
