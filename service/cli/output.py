r"""All output of the commands. Texts of jobs, people and files must not control the terminal or imitate other lines.

Secrets are removed from logs and errors, which quote values of requests, settings and libraries.

Control characters (C0 and C1), characters that reorder or hide text, line breaks and tabs in a text are shown as
escapes such as `\x1b`, `\u202e` and `\n`. In JSON, they are escaped by its own rules, so that the data stay the same.
"""

import argparse
import logging
import re
import sys
from typing import Any, TextIO

import orjson

from classifiers.redaction import redact

_LAYOUT_SPACES = "\u00a0\u202f\u2009"  # not printable for Python, and harmless
# Characters that JSON leaves as they are: DEL, C1, and those that reorder, hide or break text.
_IN_JSON = re.compile("[\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")
LOG_FORMAT = "%(asctime)s %(levelname)s %(message)s"


def escaped(text: str) -> str:
    """The text on one line, with escapes for everything that is not printable."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in _LAYOUT_SPACES else char.encode("unicode_escape").decode()
        for char in text
    )


def escaped_lines(text: str) -> str:
    """A text of several lines whose line breaks are meant, with escapes for everything else."""
    return "\n".join(escaped(one) for one in text.split("\n"))


def line(text: object = "", *, error: bool = False) -> None:
    """Print one line; `error`: on standard error, at once."""
    _write(escaped(str(text)) + "\n", error=error)


def row(*fields: object) -> None:
    """Print fields separated by tabs."""
    _write("\t".join(escaped(str(one)) for one in fields) + "\n")


def document(text: str, *, end: str = "\n") -> None:
    """Print a text of several lines that this program has laid out."""
    _write(escaped_lines(text) + end)


def escaped_but_styled(text: str) -> str:
    """As `escaped_lines`; colours stay."""
    return "".join(part if _STYLE.fullmatch(part) else escaped_lines(part) for part in _STYLE.split(text))


def styled(text: str) -> None:
    """Print a text of several lines with colours."""
    _write(escaped_but_styled(text))


def problem(text: object) -> None:
    """Print an error or a warning of the command, without secrets."""
    line(f"faultline: {redact(str(text))}", error=True)


def progress(text: str) -> None:
    """Print how far a long command is, apart from its result."""
    line(text, error=True)


def json_document(value: Any) -> None:
    """Print a value as indented JSON; dataclasses become objects, times become RFC 3339 text in UTC."""
    _write(_json(value, orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z))


def json_line(value: Any) -> bytes:
    """A value as one line of JSON in UTF-8."""
    return _json(value, orjson.OPT_APPEND_NEWLINE).encode()


def log_to_stderr() -> None:
    """Log to standard error, with escapes in each message."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(EscapingFormatter(LOG_FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class EscapingFormatter(logging.Formatter):
    """Escapes messages and tracebacks, without secrets; the lines of a traceback stay lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name in the base class
        """Format the line of a record."""
        record.message = escaped(redact(record.message))
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name in the base class
        """Format a traceback."""
        return escaped_lines(redact(super().formatException(ei)))


def _json(value: Any, options: int) -> str:
    text = orjson.dumps(value, option=options, default=_plain).decode()
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _plain(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return list(value)
    return str(value)


def _write(text: str, *, error: bool = False) -> None:
    stream: TextIO = sys.stderr if error else sys.stdout
    try:
        stream.write(text)
    except UnicodeEncodeError:  # a terminal of another encoding: escapes for the characters that it does not have
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    if error:
        stream.flush()


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add `--json`, and `--format text|json` as the same choice, written as in other commands."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--json", dest="format", action="store_const", const="json", help="print JSON")
    choice.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
