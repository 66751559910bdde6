"""Verdicts, jobs and facts for tests of advice."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import get_args

from hypothesis import strategies as st

from classifiers import taxonomy
from classifiers.contracts import JobFacts, Suspect, Verdict
from classifiers.taxonomy import RetryOutlook
from service.contracts.event import Status
from service.recommend.facts import Facts, History, OptIn

AXES = taxonomy.load()
NOW = datetime(2026, 11, 1, 3, 0, tzinfo=UTC)
ALONE = Facts(now=NOW, history=History(), opt_in=OptIn("auto", "assumed"))
LOST_GPU = Verdict(
    side="hardware",
    cause="HW.GPU.2",
    cause_top=("HW.GPU.2",),
    category=None,
    symptom=None,
    symptom_top=(),
    platform_symptom="crash",
    confidence=0.97,
    abstained=False,
    retry_outlook="helps_elsewhere",
    fingerprint="1:x",
    explanation="",
    model="m",
    rules="r",
    suspect=Suspect(node="gpu018"),
)
PASSING = replace(LOST_GPU, side="system", cause="SYS.5", retry_outlook="helps", suspect=None)
TYPO = replace(LOST_GPU, side="user", cause="USER.1", category="EE.2", retry_outlook="futile", suspect=None)
FAILED = JobFacts(status="failed", nodes=("gpu017", "gpu018.orion"))


def ran(hours: float, *, gpus: int = 8, limit_hours: float = 24, nodes: tuple[str, ...] = FAILED.nodes) -> JobFacts:
    """A job that failed after some hours."""
    return JobFacts(
        status="failed",
        gpus=gpus,
        nodes=nodes,
        started_at=NOW - timedelta(hours=hours),
        ended_at=NOW,
        time_limit_s=int(limit_hours * 3600),
    )


VERDICTS = st.builds(
    lambda cause, category, symptom, outlook, abstained, node, sure, disputed: replace(
        LOST_GPU,
        cause=cause,
        side=AXES.side_of(cause),
        category=category,
        symptom=symptom,
        retry_outlook=outlook,
        abstained=abstained,
        suspect=Suspect(node=node),
        confidence=sure,
        disputed=disputed,
    ),
    st.sampled_from(sorted(AXES.causes)),
    st.none() | st.sampled_from(sorted(AXES.categories)),
    st.none() | st.sampled_from(sorted(AXES.symptoms)),
    st.sampled_from(get_args(RetryOutlook)),
    st.booleans(),
    st.none() | st.just("gpu1"),
    st.floats(0, 1),
    st.booleans(),
)
JOBS = st.builds(
    lambda status, nodes, gpus, hours: replace(ran(hours, gpus=gpus, nodes=nodes), status=status),
    st.sampled_from([status.value for status in Status]),
    st.sampled_from([(), ("gpu1",), ("gpu1", "gpu2"), ("gpu3", "gpu4", "gpu5")]),
    st.integers(0, 4096),
    st.floats(0, 100),
)
