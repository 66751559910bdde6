"""Fits a site layer on labels. Reproducible: the same model, labels and time give the same layer.

Corrections are a kernel logistic regression with the packaged scores as offset. Its L2 penalty, a Gaussian prior around
"no correction", is chosen by cross-validation over groups with the one-standard-error rule (Breiman et al. 1984; Hastie
et al. 2009, section 7.10): of the penalties that are as good as the best one, the strongest; no correction at all where
none is better than the packaged scores. A group of failures counts once, however many of them are labelled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import LabelledCase
from classifiers.fingerprint import fingerprint
from classifiers.model.artifact import Model
from classifiers.model.linear_model import Doubles, softmax
from classifiers.model.packaged_scores import PackagedClassifier, PackagedScores
from classifiers.model.site import label_groups, platt_scaling
from classifiers.model.site.label_groups import LabelledGroup
from classifiers.model.site.layer import (
    CORRECTED_AXES,
    SiteLayer,
    SupportCase,
    smoothed,
    supported_changes,
)
from classifiers.model.site.memory import Memory, keys_of
from classifiers.model.site.platt_scaling import Point
from classifiers.model.site.similarity import FITTED, Similarities, is_similarity_feature, open_entries
from classifiers.model.site.verdicts import SiteClassifier
from classifiers.signatures import Catalogue

# Judgement: penalties that are tried; relative to the loss of one group.
PENALTIES: Final = (0.3, 1.0, 3.0, 10.0)
FOLDS: Final = 5
# Judgement: fewer groups than this are remembered, but correct no scores of other failures.
LEAST_GROUPS: Final = 20
# Judgement: the newest groups that corrections rest on. More would make verdicts slower.
MOST_GROUPS: Final = 1_000
# Judgement: features of a support case that are stored, the strongest first.
STORED_FEATURES: Final = 60
# Judgement: standard errors of the difference to the best penalty within which a stronger one is as good.
STANDARD_ERRORS: Final = 0.5
# Judgement: groups of one class, or a share of them, that a correction may lose under cross-fitting.
LOST_GROUPS: Final = 2
LOST_SHARE: Final = 0.02
# Judgement: changed verdicts that the expected share of right ones counts as.
PRIOR_CHANGES: Final = 5
# Judgement: a labelled failure whose label is less likely than this under cross-fitting is reviewed.
REVIEWED_BELOW: Final = 0.05
# Judgement: such failures that the layer names: more than anybody reviews.
MOST_DOUBTFUL: Final = 100
_CASES_AT_ONCE: Final = 500
_RIDGE: Final = 1e-6  # numerical
_MOST_STEPS: Final = 60


@dataclass(slots=True)
class SiteFit:
    """A fitted layer, and what a person should know of its labels.

    Attributes:
        layer: the layer.
        penalties: by axis the chosen penalty, None where the packaged scores stay.
        conflicts: ids of labelled cases whose group has contradicting labels; they are left out.
        doubtful: ids of labelled cases whose label is unlikely under cross-fitting, the least likely first.
    """

    layer: SiteLayer
    penalties: dict[str, float | None] = field(default_factory=dict)
    conflicts: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()


def fit(
    model: Model,
    catalogue: Catalogue,
    cases: Sequence[LabelledCase],
    *,
    now: datetime,
    parents: Sequence[str] = (),
) -> SiteFit:
    """A site layer of labelled cases.

    Args:
        model: the packaged model, which stays as it is.
        catalogue: the signatures.
        cases: the labels; cases of the golden set are left out.
        now: time of creation.
        parents: ids of the layers before it.
    """
    used = [case for case in cases if not case.provenance.get("golden")]
    packaged = PackagedClassifier(model, catalogue)
    labelled = _scored(packaged, used)
    grouped = label_groups.groups_of(labelled)
    groups, conflicts = grouped.groups, grouped.conflicts
    about: dict[str, Any] = {
        "created": now.isoformat(timespec="seconds"),
        "base": model.id,
        "parents": list(parents),
        "data": labelled_cases.digest(used),
        "labels": len(used),
        "groups": len(groups),
        "left_out": sorted(conflicts),
        "labellers": label_groups.labellers(used),
    }
    if not used:
        return SiteFit(SiteLayer(about=about))
    recurring = [group for group in groups if any(member.keys.can_recur for member in group.members)]
    memory = Memory(tuple(label_groups.entry_of(group) for group in recurring))
    fitted = _Corrections(packaged, _newest(groups))
    verdicts = _cross_fitted_verdicts(packaged, fitted)
    calibration = platt_scaling.fit(verdicts.kept)
    about["penalties"] = dict(fitted.penalties)
    about["audited"] = calibration.cases
    doubtful = fitted.doubtful()
    if doubtful:
        about["doubtful"] = list(doubtful[:MOST_DOUBTFUL])
    layer = SiteLayer(
        fitted.support(),
        memory,
        grouped.agreement,
        calibration,
        about,
        _changed_confidence(verdicts.changed),
        FITTED,
    )
    return SiteFit(layer, fitted.penalties, tuple(sorted(conflicts)), doubtful)


def _scored(packaged: PackagedClassifier, cases: Sequence[LabelledCase]) -> list[label_groups.ScoredLabel]:
    found = []
    seen: set[tuple[str, str | None, str | None]] = set()
    for start in range(0, len(cases), _CASES_AT_ONCE):
        part = cases[start : start + _CASES_AT_ONCE]
        scores = packaged.scores([case.raw for case in part])
        for number, case in enumerate(part):
            labels = scores.labels[number]
            keys = keys_of(scores.extracted[number], fingerprint(scores.extracted[number], labels.causes[0][0]))
            label = (keys.fingerprint, case.labels.best["side"], case.labels.best["cause"])
            # The scores of all would fill the memory.
            is_read = label not in seen or label_groups.is_random_sample(case)
            seen.add(label)
            found.append(label_groups.ScoredLabel(case, keys, row_of(scores, number) if is_read else None))
    return found


def row_of(scores: PackagedScores, number: int) -> PackagedScores:
    """The scores of one case of a batch."""
    one = slice(number, number + 1)
    return PackagedScores(
        scores.extracted[one],
        scores.rows[one],
        None,  # corrections do not read it
        scores.known[one],
        scores.inputs[one],
        {axis: shares[one] for axis, shares in scores.text.items()},
        {axis: shares[one] for axis, shares in scores.fused.items()},
        scores.labels[one],
    )


def _newest(groups: Sequence[LabelledGroup]) -> list[LabelledGroup]:
    """The groups whose labels are newest, as many as corrections rest on, in their order."""
    times = [max(str(member.case.provenance.get("when") or "") for member in group.members) for group in groups]
    places = sorted(range(len(groups)), key=lambda place: times[place])[-MOST_GROUPS:]
    return [groups[place] for place in sorted(places)]


class _Corrections:
    """Fitted corrections of one set of groups, by axis, with their cross-fitted versions."""

    def __init__(self, packaged: PackagedClassifier, groups: Sequence[LabelledGroup]) -> None:
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 - for fitting only

        self.groups = groups
        self.penalties: dict[str, float | None] = {}
        self.folds = label_groups.folds_of(groups, FOLDS)
        self._weights: dict[str, Doubles] = {}
        self._held_out: dict[str, dict[int, Doubles]] = {}
        self._losses: dict[str, tuple[list[int], Doubles]] = {}
        self._classes = packaged.fusion.classes
        self._features = [_strongest(group.scores.rows[0]) for group in groups]
        self._entries = [
            open_entries(group.scores.inputs[0], packaged.catalogue, group.labels["side"]) for group in groups
        ]
        self.kernel = Similarities(self._features, self._entries, FITTED).of_known()
        # Next to other processes, threads that wait for one another take twenty times as long as one.
        with threadpool_limits(limits=1, user_api="blas"):
            for axis in CORRECTED_AXES:
                self._fit(axis)

    def _fit(self, axis: str) -> None:
        self.penalties[axis] = None
        rows = [number for number, one in enumerate(self.groups) if one.labels.get(axis) in self._classes[axis]]
        if len(rows) < LEAST_GROUPS:
            return
        classes = self._classes[axis]
        shares = np.vstack([self.groups[row].scores.fused[axis] for row in rows])
        offsets = np.log(smoothed(shares))
        targets = np.array([[code == self.groups[row].labels[axis] for code in classes] for row in rows], float)
        kernel, folds = self.kernel[np.ix_(rows, rows)], self.folds[rows]
        packaged = -np.log((np.exp(offsets) * targets).sum(axis=1))
        tried = {penalty: _cross_fitted(kernel, offsets, targets, folds, penalty) for penalty in PENALTIES}
        losses = {
            one: -np.log(np.maximum((softmax(offsets + moved) * targets).sum(axis=1), 1e-9))
            for one, (moved, supported) in tried.items()
            if _keeps_classes(offsets, moved, supported, targets)
        }
        penalty = _chosen(losses, packaged)
        self._losses[axis] = (rows, packaged if penalty is None else losses[penalty])
        if penalty is None:
            return
        self.penalties[axis] = penalty
        weights = np.zeros((len(self.groups), len(classes)))
        weights[rows] = fit_weights(kernel, offsets, targets, penalty)
        self._weights[axis] = weights
        self._held_out[axis] = self._out_of_fold(axis, rows, offsets, targets, penalty)

    def _out_of_fold(
        self, axis: str, rows: Sequence[int], offsets: Doubles, targets: Doubles, penalty: float
    ) -> dict[int, Doubles]:
        """By fold the weights that were fitted without it, groups × classes."""
        places, folds = np.array(rows), self.folds[rows]
        found = {}
        for fold in range(FOLDS):
            inside = np.flatnonzero(folds != fold)
            weights = np.zeros((len(self.groups), len(self._classes[axis])))
            chosen = places[inside]
            weights[chosen] = fit_weights(
                self.kernel[np.ix_(chosen, chosen)], offsets[inside], targets[inside], penalty
            )
            found[fold] = weights
        return found

    def support(self, fold: int | None = None) -> tuple[SupportCase, ...]:
        """The labelled failures with their weights; with a fold, those that were fitted without it.

        Without corrections they have no weights; memory compares failures with them.
        """
        by_axis = self._weights if fold is None else {axis: one[fold] for axis, one in self._held_out.items()}
        return tuple(
            SupportCase(
                group.representative.case.id,
                self._features[number],
                {
                    axis: {
                        code: float(value)
                        for code, value in zip(self._classes[axis], weights[number], strict=True)
                        if abs(value) >= 1e-4  # noqa: PLR2004 - not felt in any score
                    }
                    for axis, weights in by_axis.items()
                },
                self._entries[number],
            )
            for number, group in enumerate(self.groups)
        )

    def doubtful(self) -> tuple[str, ...]:
        """Ids of the labelled cases whose label is unlikely under cross-fitting, the least likely first."""
        found: dict[str, float] = {}
        for rows, losses in self._losses.values():
            for row, loss in zip(rows, losses, strict=True):
                if loss > -np.log(REVIEWED_BELOW):
                    for member in self.groups[row].members:
                        found[member.case.id] = max(found.get(member.case.id, 0.0), float(loss))
        return tuple(sorted(found, key=lambda name: (-found[name], name)))


def _strongest(row: Mapping[str, float]) -> dict[str, float]:
    """The strongest features of a failure, scaled so that all its features together have length one."""
    kept = {name: value for name, value in row.items() if is_similarity_feature(name)}
    length = sum(value * value for value in kept.values()) ** 0.5 or 1.0
    names = sorted(kept, key=lambda name: (-abs(kept[name]), name))[:STORED_FEATURES]
    return {name: float(f"{kept[name] / length:.5g}") for name in sorted(names)}


def _cross_fitted(
    kernel: Doubles, offsets: Doubles, targets: Doubles, folds: NDArray[np.int64], penalty: float
) -> tuple[Doubles, NDArray[np.bool_]]:
    """Of weights that were fitted without a group's fold: how far they move it (groups × classes), supported or not."""
    moved, supported = np.zeros_like(offsets), np.zeros(len(offsets), dtype=np.bool_)
    for fold in range(FOLDS):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if len(inside) and len(outside):
            weights = fit_weights(kernel[np.ix_(inside, inside)], offsets[inside], targets[inside], penalty)
            similar = kernel[np.ix_(outside, inside)]
            moved[outside] = similar @ weights
            supported[outside] = supported_changes(offsets[outside], similar, weights)
    return moved, supported


def _keeps_classes(offsets: Doubles, moved: Doubles, supported: NDArray[np.bool_], targets: Doubles) -> bool:
    """Whether as many groups are right after supported corrections as before, and no class loses more than a few."""
    true = targets.argmax(axis=1)
    before = offsets.argmax(axis=1) == true
    after = np.where(supported, (offsets + moved).argmax(axis=1) == true, before)
    lost = np.bincount(true, weights=before.astype(float) - after, minlength=targets.shape[1])
    allowed = np.maximum(LOST_GROUPS, LOST_SHARE * targets.sum(axis=0))
    return bool(after.sum() >= before.sum() and (lost <= allowed).all())


def _chosen(losses: Mapping[float, Doubles], packaged: Doubles) -> float | None:
    """The strongest penalty that is as good as the best one and better than the packaged scores; None if none is."""
    if not losses:
        return None
    best = min(losses, key=lambda loss: float(losses[loss].mean()))
    for penalty in sorted(losses, reverse=True):
        behind = losses[penalty] - losses[best]
        gained = packaged - losses[penalty]
        as_good = behind.mean() <= STANDARD_ERRORS * behind.std() / len(behind) ** 0.5
        if as_good and gained.mean() > gained.std() / len(gained) ** 0.5:
            return penalty
    return None


def fit_weights(kernel: Doubles, offsets: Doubles, targets: Doubles, penalty: float) -> Doubles:
    """Weights (groups × classes) of a kernel logistic regression with offsets, by L-BFGS.

    Minimises the log loss plus penalty / 2 × the squared norm of the correction in the kernel's space.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - for fitting only; it would double the time of a start

    shape = offsets.shape
    root = np.linalg.cholesky(kernel + _RIDGE * np.eye(len(kernel)))  # in these coordinates the penalty is a sphere

    def objective(flat: Doubles) -> tuple[float, Doubles]:
        place = flat.reshape(shape)
        shares = softmax(offsets + root @ place)
        loss = -float(np.log(np.maximum((shares * targets).sum(axis=1), 1e-12)).sum())
        gradient = root.T @ (shares - targets) + penalty * place
        return loss + penalty / 2 * float((place * place).sum()), gradient.ravel()

    options = {"maxiter": _MOST_STEPS, "ftol": 1e-7}
    found = minimize(objective, np.zeros(offsets.size), jac=True, method="L-BFGS-B", options=options)
    solved: Doubles = (targets - softmax(offsets + root @ found.x.reshape(shape))) / penalty
    return solved


@dataclass(frozen=True, slots=True)
class _CrossFitted:
    """Verdicts on randomly sampled failures by corrections that have not seen them.

    Attributes:
        kept: verdicts with the packaged side, with the packaged confidence.
        changed: the others, with the corrected probability of the side.
    """

    kept: list[Point] = field(default_factory=list)
    changed: list[Point] = field(default_factory=list)


def _cross_fitted_verdicts(packaged: PackagedClassifier, fitted: _Corrections) -> _CrossFitted:
    found = _CrossFitted()
    for fold in range(FOLDS):
        site = SiteClassifier(SiteLayer(support=fitted.support(fold), kernel=FITTED), packaged)
        for group, own in zip(fitted.groups, fitted.folds, strict=True):
            for member in group.members if own == fold else ():
                if member.scores is not None and label_groups.is_random_sample(member.case):
                    [labels], [share] = site.before_calibration(member.scores)
                    right = labels.side in member.case.labels.allowed["side"]
                    packaged_confidence = packaged.model.calibration.confidence(
                        member.scores.labels[0].confidence_features
                    )
                    points = found.kept if share is None else found.changed
                    confidence = packaged_confidence if share is None else share
                    weight = float(member.case.provenance.get("audit_weight") or 1.0)
                    points.append(Point(confidence, right, member.keys.fingerprint, weight))
    return found


def _changed_confidence(points: Sequence[Point]) -> float | None:
    """Share of right sides among changed verdicts, shrunk towards their mean probability; None without one."""
    if not points:
        return None
    weights = platt_scaling.effective(points)
    expected = float((weights * [one.confidence for one in points]).sum() / weights.sum())
    right = float((weights * [one.right for one in points]).sum())
    return (right + PRIOR_CHANGES * expected) / (float(weights.sum()) + PRIOR_CHANGES)
