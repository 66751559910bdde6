"""Which line or node event a failure began with: a choice among candidates, fitted on labelled first lines.

Extraction orders lines by rules, before anything is known of the cause. Once a case has its labels, more can be said: a
line that speaks for the cause is more likely its beginning, and so is a node event that a rule set aside although it
explains all that the log shows. The choice is a conditional logit over the candidates (McFadden's choice model): one
weight for each feature, whatever the number of candidates. It changes what a verdict shows as the beginning and how
sure it is, and none of its labels. It is made for cases with node events. Where none of these is a candidate, the rules
choose: on logs of programs alone they are right more often.
"""

import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from classifiers import taxonomy
from classifiers.contracts import RawCase, Suspect
from classifiers.data.labelled_cases import LabelledCase
from classifiers.extraction.evidence_items import EvidenceItem, ExtractedCase
from classifiers.extraction.onset import Onset
from classifiers.extraction.scan import tidy
from classifiers.extraction.suspects.node_and_gpu import suspect_of_event
from classifiers.model import constants
from classifiers.model.label_fusion import FusedLabels
from classifiers.model.line_weights import LineWeights
from classifiers.model.tokenizer import words
from classifiers.relevance.event_candidates import Reason
from classifiers.signatures import Signature

_REPORT: Final = "report"
_FLAGS: Final = (
    "exception", "survived", "is_late", "reports_exit", "ends_process", "missing_ranks", "error_words", "raised_at",
    "uncorroborated", "explained",
)  # fmt: skip
_IMPOSSIBLE: Final = frozenset(
    {Reason.OTHER_NODE, Reason.OTHER_PORT, Reason.LATER}
)  # what an operator would never take for the beginning
_CASES_AT_ONCE: Final = 500
# Characters of a shown line that are compared, and the fewest that tell a line from others.
_COMPARED: Final = 160
_FEW_LETTERS: Final = 20


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a failure may have begun with, and what the choice reads of its case beside that and the labels.

    Attributes:
        found: the lines and node events, those that the rules prefer first.
        suspect: the rank and node that extraction suspects.
        nodes: the nodes of the job.
    """

    found: Sequence[EvidenceItem]
    suspect: Suspect | None
    nodes: Sequence[str]


class CaseReader(Protocol):
    """What finds the candidates of cases and gives them labels, as `training_table.SampledCases` does."""

    def candidates_and_labels(self, cases: Sequence[LabelledCase]) -> Sequence[tuple[Candidates, FusedLabels]]:
        """Candidates and labels of each case of a batch of at least one, in order."""
        ...


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen among the candidates of a case.

    Attributes:
        leading: the candidate to show as the beginning instead of the one that leads by the rules, None to leave that.
        agreement: how much the candidates speak for the side of the verdict, each by its probability, 0..1; None
            without node events, and where no catalogue entry knows any candidate.
    """

    leading: EvidenceItem | None = None
    agreement: float | None = None


@dataclass(frozen=True, slots=True)
class Beginnings:
    """The weights of features of a candidate, by name; no weights leave the order of the rules as it is."""

    weights: Mapping[str, float]

    def choice(self, extracted: ExtractedCase, labels: FusedLabels, lines: LineWeights) -> Choice:
        """The beginning of a case among its candidates, and how far these agree with the side of the verdict.

        Args:
            extracted: the evidence of a case.
            labels: its labels.
            lines: how telling the words of lines are.
        """
        among = candidates(extracted) if self.weights else None
        if among is None or not among.found:
            return Choice()
        found = among.found
        scores = [
            sum(self.weights.get(name, 0.0) * value for name, value in features)
            for features in _features(among, labels, lines)
        ]
        best = max(range(len(found)), key=scores.__getitem__)
        first = _first(found)
        # Where the rules know no beginning, an event that they set aside is none either: it would be noise.
        is_ahead = (
            scores[best] > scores[found.index(first)] + constants.BEGINNING_MARGIN
            if first is not None
            else found[best].set_aside is None
        )
        has_event = any(item.is_node_event for item in found)
        leading = found[best] if has_event and is_ahead and found[best] is not first else None
        return Choice(leading, _agreement(found, scores, labels.side))


# Without a fitted model the rules choose.
BY_RULES: Final = Beginnings({})


def candidates(extracted: ExtractedCase) -> Candidates:
    """The lines and node events of a case that its failure may have begun with.

    Lines that the last good run printed as well are none, nor is what only stands near the beginning or end of a log,
    nor are events of nodes that the job did not use, of ports beside those that failed, or of after the failure.
    """
    shown = [
        item
        for item in extracted.items
        if item.onset is not Onset.SAMPLED and (item.role in {"initiating", "cascade"} or item.onset < Onset.NEUTRAL)
    ]
    aside = [item for item in extracted.set_aside if item.is_node_event and item.set_aside not in _IMPOSSIBLE]
    return Candidates(shown + aside, extracted.case.suspect, extracted.case.job.nodes)


def _first(found: Sequence[EvidenceItem]) -> EvidenceItem | None:
    return next((item for item in found if item.role == "initiating" and item.set_aside is None), None)


def _features(among: Candidates, labels: FusedLabels, lines: LineWeights) -> Iterator[list[tuple[str, float]]]:
    """Names and values of the features of each candidate, in order."""
    causes = dict(labels.causes)
    first, suspect = _first(among.found), among.suspect
    own_nodes = frozenset(among.nodes)
    for item in among.found:
        source, aside = _source(item), "set aside" if item.set_aside else "used"
        names = [f"{source} {item.role}", f"{source} {item.onset.name}", f"{labels.side} {source} {aside}"]
        if item.set_aside:
            names.append(item.set_aside)
        if item is first:
            names.append(f"first {source}")
        names += compress(_FLAGS, [getattr(item, flag) for flag in _FLAGS])
        if suspect is not None and item.rank is not None:
            names.append("of the suspect" if item.rank == suspect.rank else "of another rank")
        if source == "event":
            place = "none" if item.node is None else "own" if item.node in own_nodes else "other"
            names.append(f"node {place}")
        features = dict.fromkeys(names, 1.0)
        for_cause = for_side = 0.0
        for hit in item.hits:
            features[f"{hit.strength} {hit.role}"] = 1.0
            features[f"entry {hit.id}"] = constants.BEGINNING_WORD_VALUE
            for_cause = max(for_cause, sum(causes.get(code, 0.0) * share for code, share in hit.causes.items()))
            for_side = max(for_side, _share_of_side(hit, labels.side))
        if item.hits:
            features[f"cause {source}"] = for_cause
            features[f"side {source} {aside}"] = for_side
        else:
            features[f"unknown {source}"] = 1.0
        odds = lines.log_odds(item.message)
        if odds is not None:
            limit = constants.BEGINNING_ODDS_LIMIT
            features[f"odds {source}"] = max(-limit, min(limit, odds)) / limit
        for word in words(item.message):
            features[f"word {word}"] = constants.BEGINNING_WORD_VALUE
        yield list(features.items())


def _agreement(found: Sequence[EvidenceItem], scores: Sequence[float], side: str) -> float | None:
    """How much the candidates that the catalogue knows speak for a side, each by its probability."""
    most = max(scores)
    known = [
        (math.exp(score - most), [hit for hit in item.hits if hit.causes])
        for score, item in zip(scores, found, strict=True)
    ]
    known = [(share, hits) for share, hits in known if hits]
    if not known:
        return None
    total = sum(share for share, _ in known)
    return sum(share * max(_share_of_side(hit, side) for hit in hits) for share, hits in known) / total


def _share_of_side(hit: Signature, side: str) -> float:
    """The share of a side in the causes for which an entry speaks."""
    axes = taxonomy.load()
    return sum(share for code, share in hit.causes.items() if axes.side_of(code) == side)


def _source(item: EvidenceItem) -> str:
    if item.from_scheduler:
        return "scheduler"
    if item.derived:
        return "derived"
    return "event" if item.is_node_event else "log"


def with_beginning(extracted: ExtractedCase, leading: EvidenceItem | None, raw: RawCase) -> ExtractedCase:
    """A case that shows a candidate as the beginning; the same case if that is None.

    What led before stays beside it; of a case with more beginnings the others become consequences. Where a node event
    leads, the suspect is on its node: a page that shows the event of one node must not suspect another.

    Args:
        extracted: the evidence of the case.
        leading: the candidate.
        raw: the case that was read.
    """
    if leading is None:
        return extracted
    items, aside, evidence = extracted.items, list(extracted.set_aside), extracted.case.evidence
    shown = list(zip([*items, *aside], evidence, strict=True))
    led = replace(leading, role="initiating", set_aside=None)
    others = [(item, line) for item, line in shown if item is not leading]
    beginnings = 0
    for place, (item, line) in enumerate(others):
        if item.role == "initiating":
            beginnings += 1
            if beginnings > constants.BEGINNINGS_BESIDE:
                others[place] = replace(item, role="cascade"), replace(line, role="cascade")
    line = next(line for item, line in shown if item is leading)
    kept = [(item, one) for item, one in others if item.set_aside is None]
    rest = [(item, one) for item, one in others if item.set_aside is not None]
    ordered = [(led, replace(line, role="initiating", note=None)), *kept, *rest]
    suspect = extracted.case.suspect
    if led.is_node_event:
        suspect = suspect_of_event(raw, items, extracted.process_exits, led, suspect)
    return replace(
        extracted,
        items=[led, *(item for item, _ in kept)],
        set_aside=tuple(item for item, _ in rest),
        effects=[item for item in extracted.effects if item is not leading],
        case=replace(extracted.case, evidence=tuple(one for _, one in ordered), suspect=suspect),
    )


def same_line(root: str, shown: Sequence[str]) -> bool:
    """Whether one of the shown lines is a labelled first line, or the main part of it."""
    whole = tidy(root)
    return any(whole[:_COMPARED] in line or (len(line) > _FEW_LETTERS and line in whole) for line in shown)


def fit(reader: CaseReader, cases: Sequence[LabelledCase], lines: LineWeights) -> Beginnings:
    """Weights from cases with a labelled first line, one of each kind; texts that people wrote are left out.

    Of many kinds some are taken (`constants.BEGINNING_KINDS`), the same ones whatever the other cases are.

    Args:
        reader: finds the candidates of cases and gives them labels.
        cases: the cases, in an order that does not depend on files.
        lines: how telling the words of lines are.
    """
    groups: list[list[list[tuple[str, float]]]] = []
    is_root: list[list[bool]] = []
    chosen = one_of_each_kind(cases)
    for begin in range(0, len(chosen), _CASES_AT_ONCE):
        part = chosen[begin : begin + _CASES_AT_ONCE]
        for case, (among, labels) in zip(part, reader.candidates_and_labels(part), strict=True):
            right = [same_line(str(case.labels.root_line), [tidy(item.text)]) for item in among.found]
            if any(right) and not all(right):
                groups.append(list(_features(among, labels, lines)))
                is_root.append(right)
    return _fitted(groups, is_root) if groups else BY_RULES


def one_of_each_kind(cases: Sequence[LabelledCase]) -> list[LabelledCase]:
    """The cases that the choice is fitted on: of a kind the first with a labelled first line."""
    first: dict[str, LabelledCase] = {}
    for case in cases:
        if case.labels.root_line and case.provenance.get("medium") != _REPORT:
            first.setdefault(case.kind, case)
    taken = sorted(first, key=lambda kind: zlib.crc32(kind.encode()))[: constants.BEGINNING_KINDS]
    return [first[kind] for kind in taken]


def _fitted(groups: Sequence[Sequence[Sequence[tuple[str, float]]]], is_root: Sequence[Sequence[bool]]) -> Beginnings:
    """Penalised maximum likelihood that one of the right candidates of each case is chosen, by L-BFGS-B."""
    from scipy.optimize import minimize  # noqa: PLC0415 - for training only; it would double the time of a start
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - as above
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - as above

    cases_with = Counter(name for group in groups for name in {name for one in group for name, _ in one})
    names = sorted(name for name, count in cases_with.items() if count > 1)
    columns = {name: column for column, name in enumerate(names)}
    pointers, indices, data = [0], [], []
    for features in (one for group in groups for one in group):
        known = [(columns[name], value) for name, value in features if name in columns]
        indices += [column for column, _ in known]
        data += [value for _, value in known]
        pointers.append(len(indices))
    matrix = csr_matrix((data, indices, pointers), shape=(len(pointers) - 1, len(names)))
    transposed = matrix.T.tocsr()
    sizes = np.array([len(group) for group in groups])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    of_group = np.repeat(np.arange(len(groups)), sizes)
    right = np.array([one for group in is_root for one in group], dtype=float)

    def objective(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scores = matrix @ weights
        scores = np.exp(scores - np.maximum.reduceat(scores, starts)[of_group])
        total, found = np.add.reduceat(scores, starts), np.add.reduceat(scores * right, starts)
        residuals = scores * right / found[of_group] - scores / total[of_group]
        penalty = constants.BEGINNING_PENALTY
        loss = -float(np.log(found / total).sum()) + penalty / 2 * float(weights @ weights)
        return loss, penalty * weights - transposed @ residuals

    options = {"maxiter": constants.BEGINNING_ITERATIONS}
    with threadpool_limits(limits=1, user_api="blas"):  # of short vectors, for which threads would wait for one another
        solved = minimize(objective, np.zeros(len(names)), jac=True, method="L-BFGS-B", options=options)
    fitted = zip(names, solved.x.tolist(), strict=True)
    return Beginnings({name: round(weight, 3) for name, weight in fitted if abs(weight) >= constants.SMALL_BEGINNING})
