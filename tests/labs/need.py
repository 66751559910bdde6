"""Requirements of tests on the machine; a missing one is a skip with the reason, or a failure if all are required."""

import os
import shutil
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    """End the test: a skip with `reason`, or a failure if TEST_REQUIRE=all forbids missing requirements."""
    if os.environ.get("TEST_REQUIRE") == "all":
        pytest.fail(f"required, but {reason}")
    pytest.skip(reason)


def need(*programs: str) -> None:
    """Continue only if each program is on the PATH."""
    for program in programs:
        if shutil.which(program) is None:
            missing(f"{program} is not installed (make test-deps)")
