"""The written runs of the training data: of each side, each with its root line, and without real places."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from classifiers.composition import training_cases
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import DatasetError, LabelledCase
from classifiers.model.artifact import Model
from tests.classifiers.data.test_no_real_hosts import PLACES, text_of
from tests.classifiers.data.written_runs import Shortener, add

pytestmark = pytest.mark.xdist_group("training cases")  # composed once for all files of the group

SIDES = ("hardware", "system", "user")
LEAST = 500  # runs of a side


@cache
def runs() -> tuple[LabelledCase, ...]:
    return tuple(training_cases.written_runs())


@pytest.mark.parametrize("side", SIDES)
def test_there_are_many_runs_of_each_side(side: str) -> None:
    assert sum(run.labels.best["side"] == side for run in runs()) >= LEAST


def test_they_teach_symptoms() -> None:
    """Their sides and causes count little, so that those of short logs do not suffer."""
    assert {run.provenance["labelled_for"] for run in runs()} == {"symptom"}


def test_the_root_line_of_a_run_is_in_it() -> None:
    for run in runs():
        line = run.labels.root_line
        shown = [stream.text for stream in run.raw.streams] + [event.text for event in run.raw.node_events]
        assert line is None or any(line.split("\n")[0].strip() in text for text in shown), run.id


def test_runs_name_no_real_place() -> None:
    assert [run.id for run in runs() if PLACES.search(text_of(run))] == []


def _raw(**changes: Any) -> dict[str, Any]:
    lines = [f"step {number} loss 2.1" for number in range(1_000)]
    lines += ["Traceback (most recent call last):", '  File "a.py", line 3, in f', "KeyError: 'lr'"]
    events = [
        {"at": "2026-01-01T00:00:00Z", "node": "n9", "source": "slurmctld", "text": f"backfill: started job {number}"}
        for number in range(40)
    ]
    return {
        "id": "new-1",
        "group": "new-1",
        "kind": "run.new-1",
        "event": {"status": "failed", "exit_code": 1, "logs": [{"rank": 0, "tail": "\n".join(lines)}],
                  "node_events": events},
        "labels": {"side": "user", "cause": "USER.1", "category": "GC.1", "symptom": "none", "retry": "futile",
                   "root_line": "KeyError: 'lr'"},
        "provenance": {"origin": "composed", "medium": "log"},
    } | changes  # fmt: skip


@pytest.mark.slow
def test_a_new_run_is_shortened_and_added_once_to_its_side(model: Model, tmp_path: Path) -> None:
    shortener = Shortener(model)
    assert add([_raw()], shortener, tmp_path) == {"hardware": 0, "system": 0, "user": 1}
    assert add([_raw()], shortener, tmp_path)["user"] == 1
    [run] = labelled_cases.read_file(tmp_path / "user.jsonl.zst")
    text = run.raw.streams[0].text
    assert "KeyError: 'lr'" in text
    assert len(text.splitlines()) < 350
    assert len(run.raw.node_events) == 3


@pytest.mark.slow
def test_a_run_of_a_real_place_is_refused(model: Model, tmp_path: Path) -> None:
    event = {"status": "failed", "logs": [{"tail": "cd /root/x: no such file"}]}
    with pytest.raises(DatasetError, match="real place"):
        add([_raw(event=event)], Shortener(model), tmp_path)
    assert not list(tmp_path.iterdir())
