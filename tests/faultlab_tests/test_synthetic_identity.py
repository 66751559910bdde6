"""Made-up owners and places."""

from pathlib import Path

from tests.faultlab.synthetic_identity import identity, scrubber


def test_a_run_always_has_the_same_identity_and_another_run_another() -> None:
    assert identity("a/b@c#1", 2) == identity("a/b@c#1", 2)
    assert len({identity(f"a/b@c#{seed}", 1).job_id for seed in range(50)}) > 40
    assert len(identity("a/b@c#1", 4).hosts) == len(set(identity("a/b@c#1", 4).hosts)) == 4


def test_nothing_of_the_machine_is_left_in_a_scrubbed_text(tmp_path: Path) -> None:
    who = identity("a/b@c#1", 1)
    work, venv = tmp_path / "work", tmp_path / "env"
    scrub = scrubber(who, work, venv, {str(tmp_path / "home"): "/home/x"}, ("192.0.2.2",))
    text = (
        f'File "{work}/train.py"\n{venv}/lib/python3.11/x.py {tmp_path}/home/.cache at 192.0.2.2:29500 '
        "not 1192.0.2.22 in /root/x"
    )
    assert scrub(text) == (
        f'File "{who.folder}/train.py"\n{who.python}/lib/python3.11/x.py /home/x/.cache at {who.address}:29500 '
        f"not 1192.0.2.22 in /home/{who.user}/x"
    )
