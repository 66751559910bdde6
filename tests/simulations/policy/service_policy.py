"""The service's policy in the simulated fleet: the real rules, with facts as the service gathers them."""

from collections import defaultdict, deque
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from classifiers.contracts import JobFacts, Verdict
from service.contracts.advice import Plan
from service.recommend.advise import decide
from service.recommend.facts import (
    Facts,
    History,
    KnownCheckpoint,
    Lineage,
    OpenIncident,
    OptIn,
    PastResubmit,
    StormState,
    Tally,
)
from service.recommend.incident_rules import (
    RecentFailure,
    SharedFailures,
    choose_probe,
    detect_incidents,
    release_times,
)
from service.recommend.policy import Policy
from service.recommend.rule_chain import RESUBMITTING, DecisionState, RuleContext
from tests.simulations.policy.engine import Engine, Work
from tests.simulations.policy.fleet import Fleet, Seen
from tests.simulations.policy.verdicts import Measured, right, verdict
from tests.simulations.policy.world import End

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_ASK_AGAIN = 0.5  # hours
_REMEMBERED = 7 * 24  # hours for which an outcome counts
_PLANS: tuple[Plan, ...] = ("elsewhere", "again")
_AUTO = OptIn("auto", "simulated")
_LIMIT_FACTOR = 1.5  # of the needed time, requested as the time limit


@dataclass(slots=True)
class _Known:
    """The stored state of one job."""

    verdict: Verdict | None = None
    job: JobFacts | None = None
    resubmits: list[PastResubmit] = field(default_factory=list)
    avoid: frozenset[int] = frozenset()
    same: int = 0
    progressed: bool = False
    spent: float = 0.0
    checkpoint: KnownCheckpoint | None = None
    held: bool = False
    pending: bool = False
    end: End | None = None


@dataclass(slots=True)
class _Incident:
    """One open incident: its held jobs and its probe."""

    id: int
    key: str
    opened: float
    held: dict[int, Work] = field(default_factory=dict)
    users: set[int] = field(default_factory=set)
    probe: Work | None = None
    probed_at: float | None = None
    tried: set[str] = field(default_factory=set)
    over: bool = False

    def fact(self, turn: float | None = None) -> OpenIncident:
        """The incident as the rules read it."""
        return OpenIncident(
            id=self.id,
            key=self.key,
            opened_at=when(self.opened),
            jobs=len(self.held),
            users=len(self.users),
            turn_at=None if turn is None else when(turn),
            is_probe=not self.over,
        )


def when(hours: float) -> datetime:
    """The simulated time as a datetime."""
    return _BEGIN + timedelta(hours=hours)


class Guarded:
    """The service's advice; `truthful` verdicts are always right, others as measured."""

    def __init__(self, policy: Policy, measured: Measured, *, truthful: bool = False, fleet: bool = True) -> None:
        self._policy = policy
        self._measured = measured
        self._truthful = truthful
        self._fleet = Fleet() if fleet and not truthful else None
        self._known: dict[int, _Known] = defaultdict(_Known)
        self._recent: deque[tuple[float, str, RecentFailure]] = deque()
        self._failures: dict[int, int] = {}
        self._works: dict[int, Work] = {}
        self._open: dict[str, _Incident] = {}
        self._count = 0
        self._outcomes: dict[tuple[str, str], deque[tuple[float, bool]]] = defaultdict(deque)
        self._storms: dict[str, deque[tuple[float, bool | None]]] = defaultdict(deque)
        self._held_since: dict[str, float] = {}

    def ended(self, engine: Engine, work: Work, end: End) -> None:
        """Store the outcome of a resubmit, before its failure is handled."""
        known = self._known[work.job.number]
        if work.runs > 1 and known.verdict is not None and known.resubmits:
            helped = end.truth is None or end.done > work.best
            plan = known.resubmits[-1].plan
            self._outcomes[known.verdict.cause, plan].append((engine.now, helped))
            self._storms[known.verdict.cause].append((engine.now, helped))
        for incident in list(self._open.values()):
            if incident.probe is work:
                incident.probe = None
                if end.truth is None or end.done > work.best:
                    self._close(engine, incident)

    def failed(self, engine: Engine, work: Work, end: End) -> None:
        """Draw the verdict, store the facts, evaluate the rules, and detect incidents."""
        known = self._known[work.job.number]
        self._works[work.job.number] = work
        known.held = known.pending = False
        known.end = end
        found = self._verdict(engine, work, end)
        seen = None
        if self._fleet is not None:
            seen = self._fleet.saw(engine.world, work, end, when(engine.now), found)
            found = self._fleet.verdict(seen)
        known.progressed = work.runs > 1 and end.done > work.best
        same = known.verdict is not None and known.verdict.fingerprint == found.fingerprint
        known.same = known.same + 1 if same and not known.progressed else 1
        known.verdict, known.job = found, self._job(work, end)
        known.checkpoint = None
        if work.job.checkpoint is not None and end.done >= work.job.checkpoint:
            age = end.done - work.job.saved(end.done)
            known.checkpoint = KnownCheckpoint("checkpoint", None, when(max(work.began_at, engine.now - age)))
        key = f"fingerprint:{found.fingerprint}"
        number = len(self._failures)
        self._failures[number] = work.job.number
        self._recent.append((engine.now, key, RecentFailure(number, str(work.job.user), str(work.job.number))))
        while engine.now - self._recent[0][0] > self._policy.incident.window_minutes / 60:
            self._recent.popleft()
        self._ask(engine, work, self._open.get(key))
        if self._fleet is not None and seen is not None:
            for other in self._fleet.alike(seen):
                self._revise(engine, other)
        if key not in self._open:
            self._detect_incident(engine, key)

    def _revise(self, engine: Engine, seen: Seen) -> None:
        """Later evidence: a job without a pending or held resubmit is evaluated again."""
        assert self._fleet is not None
        known = self._known[seen.work.job.number]
        if known.pending or known.held or seen.work.runs != seen.run:
            return
        known.verdict = self._fleet.verdict(seen)
        self._ask(engine, seen.work, self._open.get(f"fingerprint:{known.verdict.fingerprint}"))

    def _verdict(self, engine: Engine, work: Work, end: End) -> Verdict:
        assert end.truth is not None
        random = engine.world.random(work.job, 1000 + work.runs)
        output = right(end.truth) if self._truthful else self._measured.draw(random, end.truth)
        p = engine.world.parameters
        node = None
        if (
            end.node is not None
            and output.cause.startswith("HW.")
            and (self._truthful or random.random() < p["node_reported"])
        ):
            node = str(end.node)
        shared = end.root.startswith("outage") and (self._truthful or random.random() < p["outage_recognised"])
        own = end.root if end.root.startswith("bug") else f"{end.truth.cause} {random.randrange(1000)}"
        return verdict(output, end.root if shared else own, node)

    def _job(self, work: Work, end: End) -> JobFacts:
        return JobFacts(
            status="failed",
            gpus=work.job.gpus,
            nodes=tuple(str(node) for node in work.nodes),
            started_at=when(work.began_at),
            ended_at=when(end.at),
            time_limit_s=int(max(0.0, work.job.needs - work.saved) * _LIMIT_FACTOR * 3600) or 1,
        )

    def _standing(self, engine: Engine, work: Work, incident: OpenIncident | None) -> tuple[DecisionState, RuleContext]:
        known = self._known[work.job.number]
        assert known.verdict is not None
        assert known.job is not None
        tallies = {plan: self._tally(engine, known.verdict.cause, plan) for plan in _PLANS}
        facts = Facts(
            now=when(engine.now),
            lineage=Lineage(
                key=str(work.job.number),
                attempts=work.runs,
                resubmits=tuple(known.resubmits),
                first_at=when(work.first_failed_at or engine.now),
                same_fingerprint_without_progress=known.same,
                progressed=known.progressed,
            ),
            history=History({}, tallies, tallies),
            incident=incident,
            storm=self._storm(engine, known.verdict.cause),
            opt_in=_AUTO,
            queue_wait_s=engine.world.parameters["queue_hours"] * 3600,
            checkpoint=known.checkpoint,
        )
        context = RuleContext(known.verdict, known.job, facts, self._policy)
        return decide(context), context

    def _tally(self, engine: Engine, cause: str, plan: Plan) -> Tally:
        outcomes = self._outcomes[cause, plan]
        while outcomes and engine.now - outcomes[0][0] > _REMEMBERED:
            outcomes.popleft()
        helped = sum(one for _, one in outcomes)
        return Tally(helped, len(outcomes) - helped)

    def _storm(self, engine: Engine, cause: str) -> StormState:
        resubmits = self._storms[cause]
        while resubmits and engine.now - resubmits[0][0] > self._policy.storm.window_minutes / 60:
            resubmits.popleft()
        ended = [helped for _, helped in resubmits if helped is not None]
        held = self._held_since.get(cause)
        return StormState(
            cause,
            sum(helped is None for _, helped in resubmits),
            sum(ended),
            len(ended) - sum(ended),
            None if held is None else when(held),
        )

    def _ask(self, engine: Engine, work: Work, incident: _Incident | None, turn: float | None = None) -> None:
        known = self._known[work.job.number]
        state, context = self._standing(engine, work, None if incident is None else incident.fact(turn))
        known.held = known.pending = False
        if state.decision in RESUBMITTING and state.mode == "act":
            self._act(engine, work, state, context)
        elif state.held_by is not None and state.mode == "act":
            known.held = True
            if incident is not None:
                incident.held[work.job.number] = work
                incident.users.add(work.job.user)
            elif state.held_by == "storm":
                self._held_since.setdefault(context.verdict.cause, engine.now)
                engine.later(
                    engine.now + self._policy.storm.half_open_minutes / 60, partial(self._once_more, engine, work)
                )
            elif state.held_by == "repair":
                self._for_a_person(engine, work)
            elif state.held_by in {"window", "rate"}:
                engine.later(engine.now + _ASK_AGAIN, partial(self._once_more, engine, work))

    def _once_more(self, engine: Engine, work: Work) -> None:
        known = self._known[work.job.number]
        if known.held and known.verdict is not None:
            self._ask(engine, work, self._open.get(f"fingerprint:{known.verdict.fingerprint}"))

    def _for_a_person(self, engine: Engine, work: Work) -> None:
        """A job held for a repair is checked by an operator, and released once the fault is gone."""
        look = partial(self._looked_at, engine, work, work.runs)
        engine.later(engine.now + engine.world.parameters["person_hours"], look)

    def _looked_at(self, engine: Engine, work: Work, run: int) -> None:
        known = self._known[work.job.number]
        if not known.held or work.runs != run or known.verdict is None or known.end is None:
            return
        if known.end.root.startswith("bug"):
            known.held = False  # the operator sees that no repair is needed and informs the owner
        elif known.end.over_at > engine.now:
            self._for_a_person(engine, work)
        else:
            known.verdict = replace(known.verdict, retry_outlook="helps")  # repaired: all other rules are evaluated
            self._ask(engine, work, self._open.get(f"fingerprint:{known.verdict.fingerprint}"))

    def _act(self, engine: Engine, work: Work, state: DecisionState, context: RuleContext) -> None:
        known = self._known[work.job.number]
        known.avoid |= {int(node) for node in context.excluded_nodes}
        known.resubmits.append(PastResubmit(context.facts.now, context.verdict.side, context.plan))
        known.pending = True
        self._storms[context.verdict.cause].append((engine.now, None))
        self._held_since.pop(context.verdict.cause, None)
        pause = 0.0 if state.not_before is None else (state.not_before - _BEGIN).total_seconds() / 3600
        engine.again(work, max(engine.now, pause), known.avoid)

    def _detect_incident(self, engine: Engine, key: str) -> None:
        failures = [failure for _, shared, failure in self._recent if shared == key]
        for found in detect_incidents([SharedFailures(key, self._policy.incident, failures)]):
            self._count += 1
            incident = self._open[key] = _Incident(self._count, key, engine.now)
            for number in dict.fromkeys(self._failures[failure_id] for failure_id in found.failure_ids):
                work, known = self._works[number], self._known[number]
                waiting = known.pending and work.began_at < engine.now and known.verdict is not None
                if (known.held or waiting) and f"fingerprint:{known.verdict.fingerprint}" == key:  # type: ignore[union-attr]
                    engine.call_off(work)
                    if waiting:
                        known.resubmits.pop()
                    known.held, known.pending = True, False
                    incident.held[number] = work
                    incident.users.add(work.job.user)
            engine.later(engine.now + self._policy.incident.probe_minutes / 60, partial(self._try, engine, incident))

    def _try(self, engine: Engine, incident: _Incident) -> None:
        """Release a probe; check again until one succeeds."""
        if incident.over:
            return
        settings = self._policy.incident
        if incident.probe is not None and engine.now - incident.probe.began_at >= settings.probe_wait_minutes / 60:
            started = incident.probed_at is not None and incident.probe.began_at >= incident.probed_at
            if started:
                self._close(engine, incident)
                return
        if incident.probe is None and incident.held:
            held = sorted(incident.held, key=lambda number: incident.held[number].job.gpus)
            chosen = held[choose_probe([str(number) for number in held], incident.tried) or 0]
            incident.tried.add(str(chosen))
            work = incident.held.pop(chosen)
            incident.probed_at = engine.now
            self._ask(engine, work, incident, engine.now)
            if self._known[work.job.number].pending:
                incident.probe = work
        if incident.held or incident.probe is not None:
            engine.later(engine.now + settings.probe_minutes / 60, partial(self._try, engine, incident))
        else:
            incident.over = True
            self._open.pop(incident.key, None)

    def _close(self, engine: Engine, incident: _Incident) -> None:
        incident.over = True
        self._open.pop(incident.key, None)
        times = release_times([str(number) for number in incident.held], self._policy.incident, when(engine.now))
        for work, at in zip(incident.held.values(), times, strict=True):
            turn = (at - _BEGIN).total_seconds() / 3600
            engine.later(turn, partial(self._ask, engine, work, incident, turn))
