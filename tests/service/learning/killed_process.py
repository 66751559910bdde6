"""Runs an action in a process of its own and kills it with SIGKILL at one of its database statements or commits."""

import os
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Engine, event

_FAILED = 70
_MOST_STEPS = 200


def killed_at_each_step(action: Callable[[], object]) -> Iterator[int]:
    """Run the action again and again, killed one step later each time; ends when a run completes.

    A step is the moment before a statement, or before a commit. The action opens its own database connections.

    Yields:
        The number of the step at which the process was killed.
    """
    for step in range(1, _MOST_STEPS):
        status = _run(action, step)
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) == signal.SIGKILL
            yield step
            continue
        assert os.WEXITSTATUS(status) == 0, "the action failed: see the output above"
        return
    raise AssertionError(f"not done after {_MOST_STEPS} steps")


def _run(action: Callable[[], object], kill_at: int) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork in a process with threads
        child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    code = _FAILED
    try:
        _arm(kill_at)
        action()
        code = 0
    except BaseException as error:  # noqa: BLE001 - the child ends here, whatever it was
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    os._exit(code)


def _arm(kill_at: int) -> None:
    steps = 0

    def counted(*_: Any, **__: Any) -> None:
        nonlocal steps
        steps += 1
        if steps == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "before_cursor_execute", counted)
    event.listen(Engine, "commit", counted)
