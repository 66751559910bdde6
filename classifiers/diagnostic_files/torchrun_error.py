"""torchrun's error file of one process: its exception as log text.

Source: `torch/distributed/elastic/multiprocessing/errors/error_handler.py` (PyTorch 2.x). The file is JSON, its
`message` a text or an object with `message` and `extraInfo` (`py_callstack`, `timestamp`).
"""

import json
from typing import Any, Final

from classifiers.contracts import NotDiagnostic

_MOST_CHARS: Final = 64 * 1024  # of the exception (judgement)
_MOST_RANK: Final = 100_000  # a larger number is no rank (judgement: above the largest jobs)
_NOTHING: Final = "<NONE>"  # what the agent writes for a process that left no error file


def read_error_file(text: str) -> tuple[str, int | None]:
    """Return the exception with its traceback as text, and the rank if the file names it.

    Raises:
        NotDiagnostic: not an error file.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise NotDiagnostic("not JSON") from None
    message: Any = value.get("message") if isinstance(value, dict) else None
    if isinstance(message, str) and message.strip() not in {"", _NOTHING}:
        return _tidy(message), None
    if isinstance(message, str):
        raise NotDiagnostic("it records no exception")
    if not isinstance(message, dict):
        raise NotDiagnostic("not a torchrun error file: it has no message")
    extra = message.get("extraInfo")
    extra = extra if isinstance(extra, dict) else {}
    words = message.get("message")
    words = words if isinstance(words, str) and words.strip() != _NOTHING else ""
    stack = extra.get("py_callstack")
    stack = stack if isinstance(stack, str) else ""
    if not words.strip() and not stack.strip():
        raise NotDiagnostic("not a torchrun error file: its message is empty")
    last = stack.strip().rpartition("\n")[2]
    rank = extra.get("rank")
    is_rank = isinstance(rank, int) and not isinstance(rank, bool) and 0 <= rank <= _MOST_RANK
    is_in_stack = not words.strip() or words.strip()[:80] in last
    return _tidy(stack if is_in_stack else f"{stack}\n{words}"), rank if is_rank else None


def _tidy(text: str) -> str:
    return text.strip()[-_MOST_CHARS:] + "\n"
