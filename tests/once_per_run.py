"""What takes long to make is made by one worker of a test run; the others read it."""

import atexit
import fcntl
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Made = TypeVar("Made")


def once_per_run(name: str, make: Callable[[], Made]) -> Made:
    """What `make` returns: of this process without workers, of the first worker that asks otherwise.

    Args:
        name: of the file in which the workers of a run share it.
        make: returns what can be pickled.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return make()
    folder = Path(tempfile.gettempdir()) / f"faultline-tests-{run}"
    folder.mkdir(mode=0o700, exist_ok=True)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # a worker that comes later makes it again
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = folder / name
        if file.exists():
            made: Made = pickle.loads(file.read_bytes())
            return made
        first = make()
        file.write_bytes(pickle.dumps(first))
        return first
