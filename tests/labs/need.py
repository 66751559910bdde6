"""What a test needs from the machine; where it is missing: a skip with the reason, or a failure if all is required."""

import os
import shutil
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    """End the test: a skip with `reason`, or a failure where TEST_REQUIRE=all says that nothing may be missing."""
    if os.environ.get("TEST_REQUIRE") == "all":
        pytest.fail(f"required, but {reason}")
    pytest.skip(reason)


def need(*programs: str) -> None:
    """Go on only where each program is on the PATH."""
    for program in programs:
        if shutil.which(program) is None:
            missing(f"{program} is not installed (make test-deps)")
