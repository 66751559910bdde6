"""Events of torchelastic (`torchrun --event-log-handler console`): one JSON object a line, read as the log's own lines.

Source: `torch/distributed/elastic/events/api.py` and `agent/server/api.py` (PyTorch 2.11). The event of a worker that
failed holds its exit code and, in `raw_error`, the content of its error file, both as JSON inside a text. An agent's
event `SUCCEEDED` says that the agent ended, not that the workers succeeded.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from classifiers.contracts import NotDiagnostic
from classifiers.diagnostic_files.torchrun_error import read_error_file

SIGN: Final = '"torchelastic.worker.status.'
_EVENT: Final = re.compile(
    r'(?P<before>[^{]{0,160})(?P<event>\{"name": ?"torchelastic\.worker\.status\.[A-Z_]{1,40}".*\})\s*'
)
_LARGEST: Final = 999_999  # of ranks


def as_lines(line: str) -> str | None:
    """What an event says in lines of a log, empty where it is none of a failure; None for another line.

    The exception of a worker stands behind its rank, its exit in the words of the agent.
    """
    found = _EVENT.fullmatch(line)
    if found is None:
        return None
    try:
        event = json.loads(found["event"])
    except (ValueError, RecursionError):
        return None
    metadata = event.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("state") not in {"FAILED", "TERMINATED"}:
        return ""
    worker = _inner(metadata.get("metadata"))
    if metadata["state"] == "TERMINATED":
        process = _number(worker.get("worker_pid"))
        return "" if process is None else f"{found['before']}Sending process {process} closing signal SIGTERM"
    rank = _number(metadata.get("global_rank"))
    head = found["before"] + ("" if rank is None else f"[rank{rank}]: ")
    lines = [f"{head}{part}" for part in _exception(metadata.get("raw_error")).splitlines()]
    local, code = _number(worker.get("local_rank")), _number(worker.get("exit_code"), negative=True)
    if code is not None and local is not None:
        lines.append(f"{head}failed (exitcode: {code}) local_rank: {local} (pid: {_number(worker.get('worker_pid'))})")
    return "\n".join(lines)


def _exception(raw: Any) -> str:
    try:
        return read_error_file(raw)[0] if isinstance(raw, str) else ""
    except NotDiagnostic:
        return ""


def _inner(text: Any) -> Mapping[str, Any]:
    try:
        found = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _number(value: Any, *, negative: bool = False) -> int | None:
    """A number, also as the only one of a list, as the agent writes it."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 10 * _LARGEST:
        return None
    return value if negative or value >= 0 else None
