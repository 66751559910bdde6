"""The text that `faultline explain` prints."""

from dataclasses import replace

import pytest

from classifiers.contracts import Suspect, Verdict
from service.contracts.event import Status
from service.contracts.verdict import VerdictBody
from service.explain.explanation import NODE_EVENT, Explanation, ShownLine
from service.explain.job_facts import JobEnd
from service.explain.terminal import Style, text_of
from service.recommend import policy
from service.recommend.advise import advise
from tests.service.recommend.sample_facts import ALONE, FAILED, LOST_GPU, TYPO

PANIC = "Kernel panic - not syncing: Fatal exception"
PLACE = Suspect(rank=3, node="gpu018", gpu=1)


@pytest.mark.parametrize(
    ("verdict", "place"),
    [
        (LOST_GPU, "rank 3, GPU 1, node gpu018"),
        (TYPO, "rank 3"),
        (replace(LOST_GPU, abstained=True), "rank 3"),
    ],
)
def test_node_and_gpu_are_named_only_where_they_are_suspected(verdict: Verdict, place: str) -> None:
    assert f"Began at    {place}\n" in _printed(replace(verdict, suspect=PLACE))


@pytest.mark.parametrize(("node", "place"), [("gpu018", "node event of gpu018"), (None, "node event")])
def test_a_node_event_is_shown_with_its_node(node: str | None, place: str) -> None:
    assert f"initiating  {place}  {PANIC}\n" in _printed(
        LOST_GPU, ShownLine(NODE_EVENT, None, "initiating", PANIC, node=node)
    )


def _printed(verdict: Verdict, *lines: ShownLine) -> str:
    advice = advise(verdict, FAILED, ALONE, policy.built_in())
    body = VerdictBody.from_verdict(verdict, advice, event_id="e", cluster="orion", job_id="1", attempt=None)
    return text_of(Explanation(body, (), (), lines, JobEnd(Status.TIMEOUT), frozenset()), Style())
