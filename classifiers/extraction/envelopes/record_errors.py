"""The error that a structured logger keeps in fields of its own, beside the message.

Sources: zap (`error`, `stacktrace`), logrus and slog (`error`, `err`), pino (`err` with `type`, `message`, `stack`),
Elastic Common Schema (`error` with `type`, `message`, `stack_trace`), structlog's `dict_tracebacks` (`exception` as a
list with `exc_type`, `exc_value`, `frames`), loguru's `serialize` (the traceback in `text`, behind the message).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_STACKS: Final = ("exc_info", "exception", "exc_text", "traceback", "stack_trace", "stacktrace", "stack")
_ERRORS: Final = ("error", "err", "exception")
_TRACEBACK: Final = "Traceback (most recent call last):"
_MOST_FRAMES: Final = 60  # of one exception (judgement: those of the program are among them)
_MOST_EXCEPTIONS: Final = 8


def with_error(message: str, fields: Mapping[str, Any]) -> str:
    """The message of a record, with the error that its fields hold: behind a colon, or in lines of its own.

    Args:
        message: the message.
        fields: the fields of the record, nested ones among them.
    """
    stack = _stack_of(message, fields)
    plain = next((value for name in _ERRORS[:2] if isinstance(value := fields.get(name), str)), "")
    if plain.strip() and plain not in message and plain not in stack:
        message = f"{message}: {plain}"
    return f"{message}\n{stack}" if stack and stack not in message else message


def _stack_of(message: str, fields: Mapping[str, Any]) -> str:
    """The lines of the exception of a record, empty without one."""
    for name in _STACKS:
        if isinstance(value := fields.get(name), str) and value:
            return value
    for name in _ERRORS:
        if lines := "\n".join(_lines_of(fields.get(name))):
            return lines
    text = fields.get("text")
    at = text.find(_TRACEBACK) if isinstance(text, str) and message in text else -1
    return text[at:].rstrip() if isinstance(text, str) and at >= 0 else ""


def _lines_of(value: Any) -> Iterator[str]:
    """The lines of an exception that is an object, or of a list of them, the first cause first."""
    if isinstance(value, list):
        for one in reversed(value[:_MOST_EXCEPTIONS]):
            if isinstance(one, dict) and isinstance(one.get("exc_type"), str):
                yield from _listed(one)
    elif isinstance(value, dict):
        kind, words = value.get("type"), value.get("message", value.get("value"))
        stack = next((value[name] for name in _STACKS if isinstance(value.get(name), str) and value[name]), None)
        if stack is not None:
            yield stack
        elif isinstance(kind, str) and isinstance(words, str):
            yield f"{kind}: {words}"


def _listed(exception: Mapping[str, Any]) -> Iterator[str]:
    frames = exception.get("frames")
    yield _TRACEBACK
    for frame in frames[-_MOST_FRAMES:] if isinstance(frames, Sequence) and not isinstance(frames, str) else ():
        if isinstance(frame, dict):
            yield f'  File "{frame.get("filename")}", line {frame.get("lineno")}, in {frame.get("name")}'
    yield f"{exception['exc_type']}: {exception.get('exc_value', '')}".rstrip(": ")
