"""From a verdict to advice: ranked mitigations and one decision with the chain of reasons. Pure."""

from collections.abc import Mapping
from functools import cache

from classifiers import taxonomy
from classifiers.case import JobFacts, Verdict
from classifiers.taxonomy import Decision
from service.recommend import wording
from service.recommend.facts import Facts, History
from service.recommend.policy import Policy, Rule
from service.verdict import Advice, Mitigation

SHOWN = 4
RESUBMITTING = frozenset({"resubmit_now", "resubmit_after"})


def matches(code: str | None, patterns: tuple[str, ...]) -> bool:
    """Whether a code is listed, itself or by a pattern such as `HW.*`."""
    return code is not None and any(
        code == pattern or (pattern.endswith(".*") and code.startswith(pattern[:-1])) for pattern in patterns
    )


def holds(rule: Rule, verdict: Verdict, job: JobFacts) -> bool:
    """Whether every condition of a rule holds."""
    when = rule.when
    suspect_node = bool(nodes_to_leave_out(verdict, job))
    return (
        (when.status is None or job.status in when.status)
        and (when.side is None or verdict.side in when.side)
        and (when.cause is None or matches(verdict.cause, when.cause))
        and (when.category is None or matches(verdict.category, when.category))
        and (when.retry_outlook is None or verdict.retry_outlook in when.retry_outlook)
        and (when.abstained is None or verdict.abstained is when.abstained)
        and (when.suspect_node is None or suspect_node is when.suspect_node)
    )


@cache
def prior(cause: str, category: str | None) -> Mapping[str, float]:
    """P(mitigation) by the papers.

    The table fitted to Gao et al. for the cause, averaged with that of the failure category (Zhang et al.) where there
    is one. M11 ("no clear record") advises nothing and is left out.
    """
    axes = taxonomy.load()
    tables = [axes.causes[cause].extra["mitigations"]]
    if category is not None:
        tables.append(axes.categories[category].extra["mitigations"])
    weights = {code: sum(table.get(code, 0.0) for table in tables) for code in axes.mitigations if code != "M11"}
    total = sum(weights.values()) or 1.0
    return {code: weight / total for code, weight in weights.items()}


def posterior(verdict: Verdict, history: History, prior_weight: float) -> dict[str, float]:
    """P(mitigation): (local count + k × prior) / (local total + k)."""
    shares = prior(verdict.cause, verdict.category)
    weight = sum(history.resolved_by.get(code, 0) for code in shares) + prior_weight
    if weight == 0:
        return dict(shares)
    return {code: (history.resolved_by.get(code, 0) + prior_weight * share) / weight for code, share in shares.items()}


def nodes_to_leave_out(verdict: Verdict, job: JobFacts) -> tuple[str, ...]:
    """The job's own node that is suspected, by the scheduler's name for it; a name that only a log knows is not used.

    Where trying elsewhere is expected to help and the job ran on one node, that node is left out.
    """
    if verdict.retry_outlook != "helps_elsewhere":
        return ()
    if len(job.nodes) == 1:
        return job.nodes
    told = verdict.suspect.node if verdict.suspect is not None else None
    if told is None:
        return ()
    return tuple(node for node in job.nodes if node.partition(".")[0] == told.partition(".")[0])[:1]


def advise(verdict: Verdict, job: JobFacts, facts: Facts, policy: Policy) -> Advice:
    """Advice for one failure: ranked mitigations, one decision, and the chain of reasons. Pure.

    `policy` is the effective one for the job's cluster, queue and team (`Policy.effective`).
    """
    reasons: list[str] = []
    decision: Decision = "ask"
    for rule in policy.rule:
        if holds(rule, verdict, job):
            decision = rule.decision
            reasons.append(f"{rule.name}: {rule.says}")
            break
        reasons.append(f"{rule.name}: does not apply")
    else:
        reasons.append("no rule applies, so a person decides")
    exclude = nodes_to_leave_out(verdict, job)
    scores = posterior(verdict, facts.history, policy.prior_weight)
    if decision in RESUBMITTING:
        scores["M1"] = max(scores["M1"], 1.05 * max(scores.values()))
    elif decision == "stop" and any(score > 0 for code, score in scores.items() if code != "M1"):
        scores["M1"] = 0.0
    ranked = sorted(
        ((score, code) for code, score in scores.items() if score > 0), key=lambda item: (-item[0], item[1])
    )
    total = sum(score for score, _ in ranked) or 1.0
    words = wording.Words(verdict, exclude)
    return Advice(
        mitigations=tuple(Mitigation(code, score / total, words.mitigation(code)) for score, code in ranked[:SHOWN]),
        decision=decision,
        resubmit=decision in RESUBMITTING,
        reasons=tuple(reasons),
        policy=policy.version,
        exclude_nodes=exclude,
    )
