"""A policy comparison as text, JSON and HTML."""

from datetime import datetime
from html import escape
from typing import Any

from service.recommend.replay import ChangedDecision, ReplayComparison


def _day(at: datetime | None) -> str:
    return "–" if at is None else f"{at:%Y-%m-%d %H:%M}"


def rows(found: ReplayComparison) -> list[tuple[str, str]]:
    """The figures with their names, in display order."""
    share = found.changed / found.decisions if found.decisions else 0.0
    return [
        ("policy", found.policy),
        ("decisions replayed", f"{found.decisions:,}, {_day(found.first)} to {_day(found.last)} UTC"),
        ("decisions that change", f"{found.changed:,} ({share:.1%})"),
        ("resubmits more", f"{found.more:,} (how they would have ended is not known)"),
        ("resubmits fewer", f"{found.fewer:,}"),
        ("held or stopped by a limit", _limited(found)),
        ("… of them failed in fact", f"{found.failed_avoided:,}: {found.saved_gpu_hours:,.1f} GPU-hours saved"),
        ("… of them helped in fact", f"{found.helped_lost:,}: {found.lost_gpu_hours:,.1f} GPU-hours not rescued"),
        ("… of them end not known", f"{found.unknown_fewer:,}"),
    ]


def _limited(found: ReplayComparison) -> str:
    return ", ".join(f"{rule}: {count:,}" for rule, count in found.limited.most_common()) or "none"


def as_json(found: ReplayComparison) -> dict[str, Any]:
    """The comparison as JSON data."""
    return {
        "policy": found.policy,
        "asked": found.decisions,
        "changed": found.changed,
        "resubmits": {"more": found.more, "fewer": found.fewer},
        "gpu_hours": {"saved": round(found.saved_gpu_hours, 3), "lost": round(found.lost_gpu_hours, 3)},
        "known": {"failed_avoided": found.failed_avoided, "helped_lost": found.helped_lost},
        "unknown": {"more": found.unknown_more, "fewer": found.unknown_fewer},
        "since": None if found.first is None else found.first.isoformat(),
        "until": None if found.last is None else found.last.isoformat(),
        "kinds": [{"before": a, "after": b, "count": count} for (a, b), count in found.kinds.most_common()],
        "causes": [{"cause": a, "resubmits": b, "count": count} for (a, b), count in found.causes.most_common()],
        "limits": [{"rule": rule, "count": count} for rule, count in found.limited.most_common()],
        "items": [_changed(one) for one in found.shown],
    }


def _changed(one: ChangedDecision) -> dict[str, Any]:
    return {
        "failure_id": one.failure_id,
        "at": one.at.isoformat(),
        "cluster": one.cluster,
        "cause": one.cause,
        "before": one.before,
        "after": one.after,
        "outcome": one.outcome,
        "gpu_hours": one.gpu_hours,
        "reasons": list(one.reasons),
        "rule": one.rule,
        "reason": one.reason,
    }


def as_text(found: ReplayComparison) -> str:
    """The comparison as text for a terminal."""
    figures = rows(found)
    width = max(len(name) for name, _ in figures)
    lines = [f"{name:<{width}}  {value}" for name, value in figures]
    if found.kinds:
        lines += ["", "changes:"]
        lines += [f"{count:>9,}  {before} → {after}" for (before, after), count in found.kinds.most_common()]
    if found.shown:
        lines += ["", f"the first {len(found.shown)}:"]
        for one in found.shown:
            why = f"{one.rule}: {one.reason}"
            lines.append(f"{_day(one.at)}  #{one.failure_id}  {one.cause}  {one.before} → {one.after}  {why}")
    return "\n".join(lines)


def as_html(found: ReplayComparison) -> str:
    """The comparison as a self-contained HTML page."""
    figures = "".join(f"<tr><th scope='row'>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rows(found))
    kinds = "".join(
        f"<tr><td>{escape(before)}</td><td>{escape(after)}</td><td>{count:,}</td></tr>"
        for (before, after), count in found.kinds.most_common()
    )
    items = "".join(
        f"<tr><td>{_day(one.at)}</td><td>{one.failure_id}</td><td>{escape(one.cluster)}</td><td>{escape(one.cause)}</td>"
        f"<td>{escape(one.before)}</td><td>{escape(one.after)}</td><td>{escape(one.outcome or 'not known')}</td>"
        f"<td>{escape(one.rule)}: {escape(one.reason)}</td>"
        f"<td><ul>{''.join(f'<li>{escape(reason)}</li>' for reason in one.reasons)}</ul></td></tr>"
        for one in found.shown
    )
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Policy replay</title>"
        "<style>body{font:15px/1.5 sans-serif;margin:2rem;max-width:80rem}table{border-collapse:collapse;margin:1rem 0}"
        "th,td{border:1px solid #bbb;padding:.3rem .6rem;text-align:left;vertical-align:top}ul{margin:0}"
        "</style></head><body><h1>Policy replay</h1>"
        f"<table>{figures}</table><h2>Changes</h2><table><tr><th>before</th><th>after</th><th>decisions</th></tr>{kinds}"
        "</table><h2>Decisions that change</h2><table><tr><th>time (UTC)</th><th>failure</th><th>cluster</th>"
        f"<th>cause</th><th>before</th><th>after</th><th>its resubmit</th>"
        f"<th>deciding rule</th><th>reasons of all rules</th></tr>{items}</table>"
        "</body></html>\n"
    )
