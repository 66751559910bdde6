"""Properties of any history: limits hold, excluded failures are never automatic, the kill switch wins, results
repeat.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from classifiers.contracts import JobFacts, Verdict
from service.recommend import policy
from service.recommend.advise import advise, decide
from service.recommend.facts import (
    ActionRate,
    Facts,
    History,
    Lineage,
    OpenIncident,
    OptIn,
    PastResubmit,
    StormState,
    Suspicion,
    SwitchState,
    Tally,
)
from service.recommend.rule_chain import RuleContext
from tests.service.recommend.sample_facts import JOBS, NOW, PASSING, VERDICTS, ran

BOLD = """
[[rule]]
name = "everything again"
decision = "resubmit_now"
says = "As bold as a policy can be."
source = "a mistake"
"""
POLICIES = st.builds(
    lambda infra, infra_window, user, user_window, same, bold: policy.parse(
        f"""
        version = "drawn"
        [limits]
        infra_per_lineage = {infra}
        infra_per_window = {infra_window}
        user_per_lineage = {user}
        user_per_window = {user_window}
        same_failure = {same}
        """
        + (BOLD if bold else "")
    ),
    st.sampled_from([4, 9, 0, 1]),
    st.integers(0, 3),
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(1, 4),
    st.booleans(),
)
COUNTS = st.integers(0, 60)
INCIDENTS = st.none() | st.builds(
    lambda state, turn: OpenIncident(7, "fingerprint:1:x", NOW, 9, 4, state, NOW if turn else None),
    st.sampled_from(["holding", "probing", "releasing", "closed"]),
    st.booleans(),
)
SURROUNDINGS = st.fixed_dictionaries(
    {
        "incident": INCIDENTS,
        "storm": st.builds(
            lambda resubmits, helped, failed, held: StormState("k", resubmits, helped, failed, NOW if held else None),
            COUNTS,
            COUNTS,
            COUNTS,
            st.booleans(),
        ),
        "rate": st.builds(ActionRate, st.integers(0, 200), st.integers(0, 30)),
        "opt_in": st.builds(OptIn, st.sampled_from(["auto", "scheduler", "shadow", "advise", "never"])),
        "retrier": st.none() | st.just("the Argo workflow"),
        "suspicion": st.sampled_from([{}, {"gpu1": Suspicion(9.0, 4.0, 15.0)}]),
        "history": st.builds(lambda helped, failed: History({}, {}, {"again": Tally(helped, failed)}), COUNTS, COUNTS),
        "queue_wait_s": st.none() | st.floats(0, 1e6),
        "array_task": st.booleans(),
    }
)


class OneJob(RuleBasedStateMachine):
    """One lineage that fails repeatedly; every advised resubmit is carried out."""

    @initialize(drawn=POLICIES)
    def start(self, drawn: policy.Policy) -> None:
        self.policy = drawn
        self.now: datetime = NOW
        self.done: list[PastResubmit] = []
        self.failures = 0
        self.stopped = False

    @rule(hours=st.sampled_from([0.5, 13.0, 13.0, 23.0]) | st.floats(0, 40))
    def time_passes(self, hours: float) -> None:
        self.now += timedelta(hours=hours)

    @rule(stopped=st.booleans())
    def somebody_turns_the_switch(self, *, stopped: bool) -> None:
        self.stopped = stopped

    @rule()
    def it_fails_as_such_jobs_do(self) -> None:
        self.stopped = False
        self.it_fails(PASSING, ran(1), {"opt_in": OptIn("auto")}, 1, progressed=False)

    @rule(
        verdict=st.just(PASSING) | VERDICTS,
        job=st.just(ran(1)) | JOBS,
        around=st.just({"opt_in": OptIn("auto")}) | SURROUNDINGS,
        same=st.just(1) | st.integers(1, 5),
        progressed=st.booleans(),
    )
    def it_fails(self, verdict: Verdict, job: JobFacts, around: dict[str, object], same: int, progressed: bool) -> None:
        self.failures += 1
        facts = Facts(
            now=self.now,
            lineage=Lineage(
                key="one",
                attempts=self.failures,
                resubmits=tuple(self.done),
                first_at=NOW,
                same_fingerprint_without_progress=same,
                progressed=progressed,
            ),
            switch=SwitchState(stopped=self.stopped),
            **around,  # type: ignore[arg-type] # drawn by name
        )
        advice = advise(verdict, job, facts, self.policy)
        acts = advice.mode == "act" and advice.decision in {"resubmit_now", "resubmit_after"}
        assert advice == advise(verdict, job, replace(facts), self.policy)
        state = decide(RuleContext(verdict, job, facts, self.policy))
        assert (state.decision, state.mode, state.not_before) == (
            advice.decision,
            advice.mode,
            advice.action.not_before if advice.action else None,
        )
        if self.stopped:
            assert advice.mode == "advise"
        if verdict.abstained or verdict.disputed or job.status == "cancelled" or verdict.retry_outlook == "futile":
            assert not acts
            assert not advice.resubmit
        if verdict.side == "user" and verdict.retry_outlook != "helps":
            assert not acts
        if facts.opt_in.mode not in {"auto", "scheduler"} or facts.retrier is not None:
            assert not acts
        released = facts.incident is not None and facts.incident.turn_at is not None
        if same >= self.policy.limits.same_failure and not progressed and not released:
            assert not acts
        if facts.incident is not None and not released and facts.incident.state != "closed":
            assert not acts
        if acts:
            self.done.append(PastResubmit(self.now, verdict.side, "again"))

    @invariant()
    def ceilings_hold(self) -> None:
        if not hasattr(self, "policy"):
            return
        limits = self.policy.limits
        for user, most, most_in_window in (
            (False, limits.infra_per_lineage, limits.infra_per_window),
            (True, limits.user_per_lineage, limits.user_per_window),
        ):
            times = [past.at for past in self.done if (past.side == "user") is user]
            assert len(times) <= most
            window = timedelta(hours=limits.window_hours)
            for last in times:
                assert sum(last - window <= at <= last for at in times) <= most_in_window


OneJob.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestOneJob = OneJob.TestCase
