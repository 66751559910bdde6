"""The words that launchers are started with."""

from pathlib import Path

from tests.faultlab import launch
from tests.faultlab.synthetic_identity import identity
from tests.faultlab_tests.conftest import Declare

VALUES = {"python": "/env/bin/python", "script": "train.py", "port": "5", "work": "/w"}


def words(declare: Declare, more: str) -> tuple[str, ...]:
    (start,) = launch.starts(declare("pass\n", more), identity("x", 1), VALUES, "ranks", Path("/logs"))
    assert start.rank is None
    return start.words


def test_horovodrun_starts_so_many_ranks_over_gloo(declare: Declare) -> None:
    result = words(declare, 'launcher = "horovodrun"\nranks = 3\nargs = ["--at", "{work}"]\nroot = { rank = 0 }\n')
    assert result == (
        *("/env/bin/horovodrun", "--gloo", "-np", "3", "--network-interfaces", "lo"),
        *("python", "-u", "train.py", "--at", "/w"),
    )


def test_a_programs_own_words_for_horovodrun_stand_instead(declare: Declare) -> None:
    own = 'launcher_args = ["-np", "4", "--network-interfaces", "ib0", "-H", "{work}:2"]\n'
    result = words(declare, f'launcher = "horovodrun"\nranks = 3\n{own}root = {{ rank = 0 }}\n')
    assert result[:8] == ("/env/bin/horovodrun", "--gloo", "-np", "4", "--network-interfaces", "ib0", "-H", "/w:2")
