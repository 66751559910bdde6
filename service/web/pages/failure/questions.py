"""Why a verdict was reached: the questions that were asked, each with its answer in words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from service.formatting import confidence
from service.web.pages import display_names

NAMED = 3  # signatures, nodes and reasons written out


def questions(verdict: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Question and answer, in the order in which a reader checks a verdict; empty without a verdict."""
    if not verdict:
        return []
    evidence = verdict.get("evidence") or ()
    context = verdict.get("context") or ()
    found = [
        ("Does a line match a known signature?", _signatures(evidence)),
        ("Which line came first?", _first(evidence)),
        ("Did other lines follow from it?", _followed(evidence)),
        ("Was evidence set aside?", _set_aside(evidence)),
        ("Do node events and other failures agree?", _context(context, evidence)),
        ("Was expected evidence missing?", _missing(verdict.get("missing") or ())),
        ("How clear is the side?", _sure(verdict)),
    ]
    return [(question, answer) for question, answer in found if answer]


def _signatures(evidence: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(str(line["signature"]) for line in evidence if line.get("signature") and not line.get("note"))
    if not counts:
        return "No. The verdict rests on the words of the lines and on the scheduler's record."
    named = ", ".join(f"{name} ({many} {_lines(many)})" for name, many in counts.most_common(NAMED))
    more = len(counts) - NAMED
    return f"Yes: {named}{f' and {more} more' if more > 0 else ''}."


def began_with_event(verdict: Mapping[str, Any]) -> bool:
    """Whether a node event, and no line of a log, is the beginning."""
    evidence = verdict.get("evidence") or ()
    first = next((line for line in evidence if line.get("role") == "initiating"), None)
    return first is not None and first.get("stream") == "node"


def _first(evidence: Sequence[Mapping[str, Any]]) -> str:
    first = next((line for line in evidence if line.get("role") == "initiating"), None)
    if first is None:
        return "No line was identified as the first one."
    if first.get("stream") == "node":
        return f"No line of a log: a node event{' of ' + str(first['node']) if first.get('node') else ''} came first."
    parts = [f"rank {first['rank']}" if first.get("rank") is not None else "", str(first.get("node") or "")]
    where = " on ".join(part for part in parts if part)
    number = f" line {first['line']:,}" if isinstance(first.get("line"), int) else ""
    return f"{first.get('stream') or 'log'}{number}{f' of {where}' if where else ''}."


def _followed(evidence: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(str(line.get("role")) for line in evidence)
    parts = [
        f"{counts[role]} {_lines(counts[role])} {words}"
        for role, words in (
            ("cascade", "that the first failure caused"),
            ("teardown", "of the job's teardown"),
        )
        if counts[role]
    ]
    return f"Yes: {' and '.join(parts)}; they do not count as causes." if parts else "No."


def _set_aside(evidence: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(str(line["note"]) for line in evidence if line.get("note"))
    if not counts:
        return "No."
    named = "; ".join(f"{many} {_lines(many)}: {note}" for note, many in counts.most_common(NAMED))
    return f"Yes. {named}."


def _context(context: Sequence[Mapping[str, Any]], evidence: Sequence[Mapping[str, Any]]) -> str:
    events = [line for line in evidence if line.get("stream") == "node" and line.get("node")]
    used = _nodes([line for line in events if not line.get("note")])
    nothing = "Nothing was reported."
    if used:
        nothing = f"Yes: the evidence contains events of {used}. Nothing else was reported."
    elif events:
        nothing = f"No: the events of {_nodes(events)} were set aside. Nothing else was reported."
    if not context:
        return nothing
    against = sum(1 for line in context if line.get("weight", 0) < 0)
    sides = sorted({display_names.word("side", str(line.get("side"))) for line in context if line.get("weight", 0) > 0})
    parts = []
    if sides:
        parts.append(f"{len(context) - against} {_reports(len(context) - against)} for {' and '.join(sides)}")
    if against:
        parts.append(f"{against} {_reports(against)} against this verdict")
    return f"{', '.join(parts)}." if parts else nothing


def _nodes(events: Sequence[Mapping[str, Any]]) -> str:
    """The nodes of these events in words; empty without any."""
    nodes = sorted({str(line["node"]) for line in events})
    return ", ".join(nodes[:NAMED]) + (f" and {len(nodes) - NAMED} more" if len(nodes) > NAMED else "")


def _missing(missing: Sequence[str]) -> str:
    if not missing:
        return ""
    more = len(missing) - NAMED
    return f"Yes: {'; '.join(map(str, missing[:NAMED]))}{f' and {more} more' if more > 0 else ''}."


def _sure(verdict: Mapping[str, Any]) -> str:
    sure = confidence(verdict["confidence"])
    if verdict.get("abstained"):
        return f"Not clear enough: {sure} for {verdict['side']}. The verdict stays open."
    return f"{sure[0].upper()}{sure[1:]} for {verdict['side']}."


def _lines(many: int) -> str:
    return "line" if many == 1 else "lines"


def _reports(many: int) -> str:
    return "report" if many == 1 else "reports"
