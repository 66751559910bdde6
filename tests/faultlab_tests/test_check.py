"""Running again and comparing."""

from typing import Any

import pytest

from tests.faultlab import check, program
from tests.faultlab.__main__ import CAPTURED
from tests.faultlab.capture import Lab
from tests.faultlab.cases import case
from tests.faultlab_tests.conftest import Declare


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("pid 4711 at 0x7fff12ab in /a/b/c.py:12", "pid 1 at 0x7f00 in /x/y.py:3", True),
        ("KeyError: 'a'", "KeyError: 'b'", False),
    ],
)
def test_masked_lines_differ_only_where_the_failure_does(one: str, other: str, same: bool) -> None:
    assert (check.masked(one) == check.masked(other)) is same


def test_a_code_over_128_and_a_signal_are_one_class() -> None:
    assert check.ending({"status": "failed", "exit_code": 137}) == check.ending({"status": "failed", "signal": 9})
    assert check.ending({"status": "failed", "exit_code": 1}) == check.ending({"status": "failed", "exit_code": 2})
    assert check.ending({"status": "timeout"}) != check.ending({"status": "failed", "exit_code": 1})


def test_a_changed_program_is_found_out(declare: Declare) -> None:
    before: dict[str, Any] = case(Lab().run(declare("1 / 0\n"), 1))
    assert check.again(Lab(), before, declare("x = 1\nx / 0\n")).wrong is None
    assert "root line" in str(check.again(Lab(), before, declare("[][0]\n")).wrong)
    assert "ended well" in str(check.again(Lab(), before, declare("print(1)\n")).wrong)
    ended = check.again(Lab(), before, declare("import os\nprint('Error')\nos.kill(os.getpid(), 9)\n")).wrong
    assert "ended failed by signal 9" in str(ended)


def test_twenty_captured_runs_fail_again_as_they_did() -> None:
    chosen = check.choose(check.read(CAPTURED), program.load(), 20, cheap=True, seed=None)
    assert len(chosen) == 20
    lab = Lab()
    compared = [check.again(lab, one, plan) for one, plan in chosen]
    assert len([one for one in compared if one.wrong]) <= 1, compared  # ranks that race may tell it in another word
    assert sum(one.skipped is None for one in compared) >= 10
