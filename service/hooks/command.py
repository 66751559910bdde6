"""Any program as a hook: the request is one JSON object on its standard input, the exit code is the result.

Exit code 0: done (a last output line of JSON such as {"new_job_id": "77"} or {"result": "already_done", "detail": ".."}
is read). 75 (EX_TEMPFAIL of sysexits.h): retry later. Any other code: failed. It cannot be determined whether an
interrupted program did its work: such a request becomes `unknown` and is not repeated automatically.
"""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import IO, Any

from service.formatting import one_line
from service.hooks.lease_parser import LONGEST_ID, request_to_json
from service.hooks.request import Failed, Lease, Ready, Request, Settled

TRY_LATER = 75
RETRY_S = 60.0
OUTPUT_BYTES = 64 * 1024
SHOWN = 500
KILL_WAIT_S = 5.0
RESULTS = ("done", "already_done", "refused", "unknown")


class CommandScheduler:
    """See `service.hooks.request.Scheduler`.

    Args:
        program: the program and its first arguments.
        timeout_s: time limit in seconds, after which the process group of the program is killed.
    """

    kind = "command"
    can_look_up = False

    def __init__(self, program: Sequence[str], *, timeout_s: float) -> None:
        self._program = tuple(program)
        self._timeout_s = timeout_s

    def inspect(self, request: Request, *, begun_at: datetime | None) -> Ready | Settled | Failed:
        """See `Scheduler`; always ready, since there is nothing to query."""
        del request
        assert begun_at is None, "the runner never starts such a request twice"
        return Ready(f"run {self._program[0]}")

    def execute(self, request: Request, lease: Lease) -> Settled | Failed:
        """See `Scheduler`."""
        given = json.dumps(request_to_json(request)).encode() + b"\n"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}
        lease.check()
        with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as stdin:
            stdin.write(given)
            stdin.seek(0)
            try:
                process = subprocess.Popen(  # noqa: S603 - the administrator's own program, no shell
                    self._program,
                    stdin=stdin,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env=environment | {"FAULTLINE_REQUEST_ID": request.request_id},
                )
            except OSError as error:
                return Failed(f"{self._program[0]}: {error.strerror}", RETRY_S)
            try:
                code = process.wait(self._timeout_s)
            except subprocess.TimeoutExpired:
                _end(process)
                return Settled("unknown", f"it was ended after {self._timeout_s:g} s; {_shown(printed)}")
            except BaseException:
                _end(process)
                raise
            return _outcome(code, printed)

    def maintain(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing; no resources are held."""


def _outcome(code: int, printed: IO[bytes]) -> Settled | Failed:
    if code == 0:
        answer = _last_line(printed)
        result = answer.get("result", "done")
        detail = answer.get("detail")
        return Settled(
            result if result in RESULTS else "done",
            detail if isinstance(detail, str) else f"exit code 0; {_shown(printed)}",
            _job_id(answer.get("new_job_id")),
        )
    if code == TRY_LATER:
        return Failed(f"exit code 75, try later; {_shown(printed)}", RETRY_S)
    if code < 0:
        return Settled("unknown", f"ended by signal {-code}; {_shown(printed)}")
    return Failed(f"exit code {code}; {_shown(printed)}")


def _job_id(given: Any) -> str | None:
    """The id of the new job; None if it is none that the service takes, which would refuse the whole report."""
    text = str(given) if isinstance(given, str | int) else ""
    return text if 0 < len(text) <= LONGEST_ID and text.isprintable() else None


def _last_line(printed: IO[bytes]) -> dict[str, Any]:
    lines = _tail(printed).strip().splitlines()
    with suppress(ValueError, RecursionError):
        answer = json.loads(lines[-1]) if lines else None
        if isinstance(answer, dict):
            return answer
    return {}


def _tail(printed: IO[bytes]) -> str:
    size = printed.seek(0, os.SEEK_END)
    printed.seek(max(0, size - OUTPUT_BYTES))
    return printed.read().decode("utf-8", "replace")


def _shown(printed: IO[bytes]) -> str:
    text = one_line(_tail(printed))
    return f"output: {text[-SHOWN:]}" if text else "no output"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate the process group, then kill it."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(KILL_WAIT_S)
            if how is signal.SIGTERM:
                continue  # its children may still run
            return
