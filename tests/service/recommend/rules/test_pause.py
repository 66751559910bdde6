"""The pause before a resubmit: grows, varies between jobs, and is reproducible."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from service.recommend import policy
from service.recommend.advise import advise
from service.recommend.facts import Lineage, PastResubmit
from service.recommend.policy_settings import Backoff
from service.recommend.rules.pause import pause_s
from tests.service.recommend.sample_facts import ALONE, FAILED, LOST_GPU, NOW, PASSING, ran

BUILT_IN = policy.built_in()


@given(
    st.floats(0, 1e5),
    st.floats(1, 1e6),
    st.floats(0, 1e6),
    st.floats(0, 1),
    st.integers(0, 10_000),
    st.text(max_size=5),
)
def test_a_pause_is_never_longer_than_allowed(
    base: float, factor: float, most: float, jitter: float, tries: int, key: str
) -> None:
    settings = Backoff(base_s=base, factor=factor, max_s=most, jitter=jitter)
    seconds = pause_s(settings, tries, key, 1)
    assert 0 <= seconds <= most * (1 + jitter) + 1e-6
    assert seconds == pause_s(settings, tries, key, 1)


def test_pauses_grow_and_differ_between_jobs() -> None:
    settings = BUILT_IN.backoff.model_copy(update={"jitter": 0.0})
    assert [pause_s(settings, tries, "a", 1) for tries in range(7)] == [60, 120, 240, 480, 960, 1920, 3600]
    spread = {pause_s(BUILT_IN.backoff, 0, f"job {number}", 1) for number in range(50)}
    assert len(spread) == 50
    assert min(spread) < 52
    assert max(spread) > 68


def test_only_the_first_resubmit_without_the_bad_node_has_no_pause() -> None:
    job = replace(ran(1), nodes=FAILED.nodes)
    first = advise(LOST_GPU, job, ALONE, BUILT_IN)
    assert first.decision == "resubmit_now"
    past = PastResubmit(NOW - timedelta(hours=2), "hardware", "elsewhere")
    second = advise(LOST_GPU, job, replace(ALONE, lineage=Lineage("a", 2, (past,))), BUILT_IN)
    assert second.decision == "resubmit_after"
    assert second.action is not None
    assert second.action.not_before is not None
    assert second.action.not_before > NOW
    assert advise(PASSING, job, ALONE, BUILT_IN).decision == "resubmit_after"
