"""The ten mitigations ranked by their posterior probability: published figures combined with local outcomes."""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

from classifiers import taxonomy
from classifiers.contracts import Verdict
from service.recommend.facts import History

SHOWN = 4


@cache
def codes() -> tuple[str, ...]:
    """The codes of the ten mitigations, M1 to M10; M11 ("no clear record") is not a mitigation."""
    return tuple(code for code in taxonomy.load().mitigations if code != "M11")


@cache
def prior(cause: str, category: str | None) -> Mapping[str, float]:
    """P(mitigation) from the publications.

    The table fitted to Gao et al. for the cause, averaged with the table of the failure category (Zhang et al.) if
    there is one. M11 ("no clear record") is left out.
    """
    axes = taxonomy.load()
    tables = [axes.causes[cause].extra["mitigations"]]
    if category is not None:
        tables.append(axes.categories[category].extra["mitigations"])
    weights = {code: sum(table.get(code, 0.0) for table in tables) for code in codes()}
    total = sum(weights.values()) or 1.0
    return {code: weight / total for code, weight in weights.items()}


def posterior(verdict: Verdict, history: History, prior_weight: float) -> dict[str, float]:
    """P(mitigation): (local count + k × prior) / (local total + k)."""
    return _weighed(prior(verdict.cause, verdict.category), history, prior_weight)


def _weighed(shares: Mapping[str, float], history: History, prior_weight: float) -> dict[str, float]:
    weight = sum(history.resolved_by.get(code, 0) for code in shares) + prior_weight
    if weight == 0:
        return dict(shares)
    return {code: (history.resolved_by.get(code, 0) + prior_weight * share) / weight for code, share in shares.items()}


def ranked(
    scores: dict[str, float], *, resubmitting: bool, stopped: bool, larger_request: bool = False
) -> list[tuple[str, float]]:
    """The top codes with their shares, best first; the first one agrees with the decision."""
    first = "M1" if resubmitting else "M10" if larger_request else None
    if stopped and any(score > 0 for code, score in scores.items() if code != "M1"):
        scores["M1"] = 0.0
    if first is not None:
        scores[first] = max(scores[first], 1.05 * max(scores.values()))
    ordered = sorted(((code, score) for code, score in scores.items() if score > 0), key=lambda one: (-one[1], one[0]))
    total = sum(score for _, score in ordered) or 1.0
    return [(code, score / total) for code, score in ordered[:SHOWN]]


def shown(
    verdict: Verdict,
    history: History,
    prior_weight: float,
    *,
    resubmitting: bool,
    stopped: bool,
    larger_request: bool = False,
) -> Sequence[tuple[str, float]]:
    """`ranked` applied to `posterior`; cached where there are no local outcomes."""
    if history.resolved_by:
        scores = posterior(verdict, history, prior_weight)
        return ranked(scores, resubmitting=resubmitting, stopped=stopped, larger_request=larger_request)
    return _by_papers(
        verdict.cause,
        verdict.category,
        prior_weight,
        resubmitting=resubmitting,
        stopped=stopped,
        larger_request=larger_request,
    )


@lru_cache(maxsize=4096)
def _by_papers(
    cause: str,
    category: str | None,
    prior_weight: float,
    *,
    resubmitting: bool,
    stopped: bool,
    larger_request: bool,
) -> tuple[tuple[str, float], ...]:
    scores = _weighed(prior(cause, category), History(), prior_weight)
    return tuple(ranked(scores, resubmitting=resubmitting, stopped=stopped, larger_request=larger_request))
