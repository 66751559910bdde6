"""Fits a candidate on the site's labels, judges it, and puts it in use if the gate allows."""

import logging
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from classifiers.case_builder import build_case
from classifiers.composition import training_cases
from classifiers.composition.noise import Noise, add_noise
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import DatasetError, LabelledCase
from classifiers.diagnoser import Diagnoser
from classifiers.evaluation import adaptation
from classifiers.model.artifact import Model
from classifiers.model.site import fitting
from classifiers.model.site.fitting import SiteFit
from classifiers.model.site.layer import SiteLayer
from classifiers.signatures import Catalogue
from service.clock import Clock
from service.db.session import Store
from service.errors import Conflict
from service.feedback import label_export
from service.learning import gate
from service.learning.gate import Comparison, LabelFacts
from service.learning.promotion import KEPT_LAYERS, Promotions
from service.learning.records import GateResult
from service.learning.shadow_run import ShadowRun

# Judgement: packaged cases of each cause that the gate measures.
CASES_OF_CAUSE: Final = 25
# Judgement: harmless node events of each of these cases among noise.
NOISE_EVENTS: Final = 10
# Judgement: failures of a group to which a person gave the same label that are read. It is one vote, however many.
ALIKE: Final = 5
# Judgement: share of the newest groups with labels that are held out to measure how well labels carry over.
NEWEST_SHARE: Final = 0.2
# Judgement: of the logs of all labels, which are in memory together.
LOG_CHARACTERS: Final = 512 * 1024 * 1024
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Candidate:
    """A fitted candidate with the gate's result; `fit` names the labels to review."""

    layer_id: str
    fit: SiteFit
    gate: GateResult
    promoted: bool


class Retraining:
    """Retrains; `promotions` puts stored layers in use.

    Args:
        store: the labels and the registry.
        clock: the current time.
        model: the packaged model.
        catalogue: the signatures in use.
        key: the key that seals layers; None: they are not sealed.
        shadow: runs a candidate on stored failures before the gate decides; None: it is not run.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        model: Model,
        catalogue: Catalogue,
        key: bytes | None = None,
        *,
        shadow: ShadowRun | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._model = model
        self._catalogue = catalogue
        self._shadow = shadow
        self.promotions = Promotions(store, model.id, key)

    def retrain(
        self,
        actor: str,
        *,
        promote: bool = True,
        benchmark: Sequence[LabelledCase] | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Candidate:
        """Fit a candidate on the stored labels, judge and store it; promote it if the gate allows.

        Args:
            actor: who retrains.
            promote: whether to promote a candidate that the gate accepts.
            benchmark: cases that it must not get worse on; None: packaged cases of each cause.
            progress: receives a line of text at each step.

        Raises:
            Unavailable: the database does not answer; nothing is half promoted.
        """
        began = self._clock.now()  # labels that are given from now on are new for the schedule
        protected = self._golden()
        labels = stored_labels(self._store, golden=False)
        golden = stored_labels(self._store, golden=True)
        with self._store.reading() as reading:
            known = reading.site_layers.last_promotion()
            active = self.promotions.in_use(reading)
        parents = () if active is None else (active.id,)
        progress(f"fitting a site layer on {len(labels)} labels")
        fit = fitting.fit(self._model, self._catalogue, labels, now=self._clock.now(), parents=parents)
        progress("comparing it with the model in use")
        result = self._judged(fit, active, labels, golden, benchmark_cases() if benchmark is None else benchmark)
        if self._golden() != protected:
            result = gate.interrupted(result)
        with self._store.unit_of_work() as work:
            work.site_layers.lock()
            # Another process may have fitted the same and put it in use meanwhile: its seal says so, and stays.
            if not self.promotions.is_in_use(work, fit.layer.id):
                result = work.site_layers.add(fit.layer.id, fit.layer.text(), actor, result, at=began)
                self.promotions.seal(work, fit.layer.id)
            work.site_layers.prune(KEPT_LAYERS)
            work.audit_log.append(
                actor,
                "model.candidate",
                f"model/{fit.layer.id}",
                after={"decision": result.decision, "reasons": list(result.reasons), "labels": len(labels)},
            )
        # Without a label nothing changes, except that labels which were withdrawn end to count.
        promoted = promote and result.decision == "promote" and not (fit.layer.is_empty and active is None)
        if promoted:
            try:
                self.promotions.promote(fit.layer.id, actor, instead_of=known)
            except Conflict as error:  # the gate compared it with another layer, which a person may have rolled back
                progress(error.detail)
                promoted = False
        return Candidate(fit.layer.id, fit, result, promoted)

    def _golden(self) -> frozenset[int]:
        with self._store.reading() as reading:
            return reading.feedback.golden()

    def _judged(
        self,
        fit: SiteFit,
        active: SiteLayer | None,
        labels: Sequence[LabelledCase],
        golden: Sequence[LabelledCase],
        benchmark: Sequence[LabelledCase],
    ) -> GateResult:
        packaged = Diagnoser(self._model, self._catalogue)
        before, after = packaged.with_layer(active), packaged.with_layer(fit.layer)
        comparisons = [
            _compared("packaged cases", benchmark, before, after),
            # Every second one: they take longer, and each cause is among them.
            _compared("packaged cases among noise", among_noise(benchmark[::2]), before, after),
            _compared("golden set", golden, before, after),
        ]
        older, newest = split_newest(labels)
        if len(newest) >= gate.HELD_OUT_LABELS and older:
            earlier = fitting.fit(self._model, self._catalogue, older, now=self._clock.now()).layer
            comparisons.append(_compared("newest labels", newest, packaged, packaged.with_layer(earlier)))
        plain = adaptation.answers(packaged, [one.raw for one in labels])
        facts = LabelFacts(
            len(labels),
            fit.layer.about.get("labellers", {}),
            len(fit.conflicts),
            gate.overturned(labels, plain),
        )
        shadow = None if self._shadow is None else self._shadow.recent(before, after)
        # Each step of a slow decline is small: the whole of it has to be, too.
        since_packaged = "packaged cases, compared with the packaged model"
        whole = [] if active is None else [_compared(since_packaged, benchmark, packaged, after)]
        return gate.judge(comparisons, facts, shadow, whole)


def _compared(name: str, cases: Sequence[LabelledCase], before: Diagnoser, after: Diagnoser) -> Comparison:
    return Comparison(name, cases, *adaptation.answers_of_both(before, after, [one.raw for one in cases]))


def benchmark_cases() -> list[LabelledCase]:
    """Captured cases of each cause, of different kinds of failure, in a fixed order."""
    by_cause: dict[str, list[LabelledCase]] = defaultdict(list)
    kinds: set[str] = set()
    for case in sorted(training_cases.captured(), key=lambda one: one.id):
        cause = case.labels.best["cause"]
        if cause is not None and case.kind not in kinds and len(by_cause[cause]) < CASES_OF_CAUSE:
            kinds.add(case.kind)
            by_cause[cause].append(case)
    return [case for cause in sorted(by_cause) for case in by_cause[cause]]


def among_noise(cases: Sequence[LabelledCase]) -> list[LabelledCase]:
    """The cases among harmless node events and neutral log lines, the same at each call."""
    noise = Noise(node_events=NOISE_EVENTS)
    found = []
    for case in cases:
        rng = random.Random(case.id)  # noqa: S311 - draws cases to measure
        event = add_noise(case.event, rng, noise, root_rank=case.labels.root_rank)
        found.append(replace(case, raw=build_case(event), event=event))
    return found


def split_newest(labels: Sequence[LabelledCase]) -> tuple[list[LabelledCase], list[LabelledCase]]:
    """The labels of older groups, and those of the newest groups; a group is as new as its first label."""
    first: dict[str, str] = {}
    for one in labels:
        when = str(one.provenance.get("when") or "")
        first[one.group] = min(first.get(one.group, when), when)
    ordered = sorted(first, key=lambda group: (first[group], group))
    newest = set(ordered[len(ordered) - round(NEWEST_SHARE * len(ordered)) :])
    return [one for one in labels if one.group not in newest], [one for one in labels if one.group in newest]


def stored_labels(store: Store, *, golden: bool) -> list[LabelledCase]:
    """The labels of stored failures, of the golden set or the others; of these few that repeat one another.

    The newest, as far as their logs fit in memory. Labels that no version of this service gives, as in a database that
    somebody changed, are left out.

    Raises:
        Unavailable: the database does not answer.
    """
    with store.reading() as reading:
        weights = reading.audit_samples.weights()
    found: list[LabelledCase] = []
    characters = 0
    for raw in label_export.cases(store, golden=golden, most_alike=None if golden else ALIKE, audited=weights):
        characters += sum(len(one["tail"]) for one in raw["event"]["logs"])
        if characters > LOG_CHARACTERS:
            _log.warning("only the newest %d labels are learned from: the logs of all do not fit in memory", len(found))
            break
        try:
            found.append(_case(raw, weights))
        except DatasetError as error:
            _log.warning("a label is left out: %s", error)
    return found


def _case(raw: dict[str, Any], weights: Mapping[int, float]) -> LabelledCase:
    """A stored label; that of an audited failure with the number of failures that it stands for."""
    failure = int(str(raw["id"]).rpartition("-")[2])
    if failure in weights:
        raw["provenance"]["audit_weight"] = weights[failure]
    return labelled_cases.parse(raw, str(raw["id"]))
