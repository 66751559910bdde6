"""The text that `faultline explain` prints."""

from dataclasses import replace

import pytest

from classifiers.contracts import Suspect, Verdict
from service.contracts.event import Status
from service.contracts.verdict import VerdictBody
from service.explain.explanation import Explanation
from service.explain.job_facts import JobEnd
from service.explain.terminal import Style, text_of
from service.recommend import policy
from service.recommend.advise import advise
from tests.service.recommend.sample_facts import ALONE, FAILED, LOST_GPU, TYPO

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
    found = replace(verdict, suspect=PLACE)
    body = VerdictBody.from_verdict(
        found,
        advise(found, FAILED, ALONE, policy.built_in()),
        event_id="e",
        cluster="orion",
        job_id="1",
        attempt=None,
    )
    shown = text_of(Explanation(body, (), (), (), JobEnd(Status.TIMEOUT), frozenset()), Style())
    assert f"Began at    {place}\n" in shown
