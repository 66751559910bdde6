"""Forks of a preloaded interpreter behave as processes of their own."""

from collections.abc import Iterator

import pytest

from tests.faultlab.capture import Lab
from tests.faultlab.cases import case
from tests.faultlab.fork_server_pool import Zygotes
from tests.faultlab_tests.conftest import Declare

PRELOAD = 'preload = ["json"]\n'


@pytest.fixture
def lab() -> Iterator[Lab]:
    zygotes = Zygotes()
    yield Lab(zygotes)
    zygotes.close()


def test_a_fork_prints_what_a_fresh_interpreter_prints(declare: Declare, lab: Lab) -> None:
    code = (
        "import os, sys\nprint(__name__, sys.argv[1:], os.path.basename(__file__) != '')\n\n\n"
        "def f():\n    return {}['k']\n\n\nf()\n"
    )
    plan = declare(code, PRELOAD + 'args = ["--n", "{seed}"]\n')
    forked, fresh = case(lab.run(plan, 4)), case(Lab().run(plan, 4))
    assert forked["event"]["logs"] == fresh["event"]["logs"]
    assert forked["labels"] == fresh["labels"]


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("import sys\nprint('Error')\nsys.exit(7)\n", (7, None)),
        ("import sys\nsys.exit('Error: said')\n", (1, None)),
        ("import os\nprint('Error')\nos.kill(os.getpid(), 11)\n", (139, 11)),
        ("import atexit\natexit.register(print, 'last Error')\n1 / 0\n", (1, None)),
    ],
)
def test_its_end_is_reported(declare: Declare, lab: Lab, code: str, ended: tuple[int, int | None]) -> None:
    event = case(lab.run(declare(code, PRELOAD), 1))["event"]
    assert event.get("exit_code") == ended[0] or event.get("signal") == ended[1]
    assert "Error" in event["logs"][-1]["tail"]


def test_one_fork_knows_nothing_of_another(declare: Declare, lab: Lab) -> None:
    code = (
        "import json, os\nassert not hasattr(json, 'mark') and 'MARK' not in os.environ\n"
        "json.mark = 1\nos.environ['MARK'] = '1'\nraise ValueError('Error')\n"
    )
    plan = declare(code, PRELOAD + 'root = { line = "^ValueError" }\n')
    for seed in (1, 2):
        # An assertion of the program that fails would be its root line.
        assert case(lab.run(plan, seed))["labels"]["root_line"] == "ValueError: Error"
