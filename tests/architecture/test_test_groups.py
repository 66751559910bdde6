"""The groups of tests are in effect: pytest and pytest-xdist can lose them without a word."""

import pytest


def test_workers_know_the_groups(request: pytest.FixtureRequest) -> None:
    """Without groups each worker starts every lab, database and browser, and two clusters run at the same time."""
    if not request.config.getoption("loadgroup", default=False):
        pytest.skip("not run by several workers that take whole groups (make test)")
    assert request.node.nodeid.endswith("@tests/architecture/test_test_groups.py")
