"""The frame in the job's own code, and the suspect under the names of the job."""

import pytest

from classifiers.contracts import Evidence, JobFacts, LogStream, Suspect
from classifiers.own_frame import own_frame
from classifiers.suspected_place import suspect_of_job

TRACEBACK = """step 12
Traceback (most recent call last):
  File "/home/ana/vit/pretrain.py", line 10, in <module>
    main()
  File "/home/ana/vit/optim.py", line 88, in build
    return torch.optim.AdamW(groups, weight_decay=cfg["weight_decay"])
  File "/opt/conda/lib/python3.11/site-packages/omegaconf/dictconfig.py", line 374, in __getitem__
    self._format_and_raise(key=key, value=None, cause=e)
KeyError: 'weight_decay'
"""
LINE = Evidence("KeyError: 'weight_decay'", "initiating", rank=0, node="n1", stream="stderr", line=9)


def stream(text: str) -> LogStream:
    return LogStream(text=text, rank=0, node="n1", stream="stderr")


def test_the_innermost_frame_outside_of_libraries_is_named() -> None:
    assert own_frame([stream(TRACEBACK)], [LINE]) == "optim.py:88"


def test_a_rank_in_front_of_each_line_does_not_matter() -> None:
    text = "".join(f"[rank0]: {line}\n" for line in TRACEBACK.splitlines())
    line = Evidence("[rank0]: KeyError: 'weight_decay'", "initiating", rank=0, node="n1", stream="stderr")
    assert own_frame([stream(text)], [line]) == "optim.py:88"


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'weight_decay'\n",
        TRACEBACK.replace("/home/ana/vit", "/usr/lib/python3/dist-packages/x"),
        TRACEBACK.replace("KeyError:", "Traceback (most recent call last):\nKeyError:"),
    ],
)
def test_without_a_frame_of_its_own_nothing_is_named(text: str) -> None:
    assert own_frame([stream(text)], [LINE]) is None


def test_a_node_event_has_no_frame() -> None:
    event = Evidence("NVRM: Xid 79", "initiating", node="n1", stream="node")
    assert own_frame([stream(TRACEBACK)], [event]) is None
    assert own_frame([stream(TRACEBACK)], []) is None


@pytest.mark.parametrize(
    ("suspect", "nodes", "found"),
    [
        (Suspect(1, "n1", 3), ("n1", "n2"), Suspect(1, "n1", 3)),
        (Suspect(1, "n1.example.org", 3), ("n1", "n2"), Suspect(1, "n1.example.org", 3)),
        (Suspect(1, "n1"), (), Suspect(1, "n1")),
        (Suspect(1, "other", 3), ("n1", "n2"), Suspect(1, None, 3)),
        (Suspect(None, "172.21.0.5"), ("n1",), Suspect(None, "n1")),
        (Suspect(None, "other"), ("n1", "n2"), None),
        (None, ("n1",), None),
    ],
)
def test_a_node_that_the_job_did_not_use_is_not_named(
    suspect: Suspect | None, nodes: tuple[str, ...], found: Suspect | None
) -> None:
    assert suspect_of_job(suspect, JobFacts(status="failed", nodes=nodes), "crash") == found


def test_a_refused_submission_has_no_suspect() -> None:
    job = JobFacts(status="failed", nodes=("n1",))
    assert suspect_of_job(Suspect(0, "n1"), job, "submission_failure") is None
