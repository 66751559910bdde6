"""Message to the owner of a job, with differences between their machine and the platform."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from classifiers import taxonomy
from service.failures.records import FailureDetail
from service.formatting import confidence, escape_invisible, strip_colour
from service.web.pages import display_names

LINE = 300


@dataclass(frozen=True, slots=True)
class OwnerMessage:
    """A message ready to send. `differs` names what may differ between local machine and platform, if anything."""

    text: str
    differs: str | None
    says: str
    check: tuple[str, ...]


@cache
def _differences() -> dict[str, Any]:
    text = files("service.web.pages").joinpath("local_platform.toml").read_text(encoding="utf-8")
    return {name: entry for name, entry in tomllib.loads(text).items() if isinstance(entry, dict)}


def compose(detail: FailureDetail) -> OwnerMessage | None:
    """The message for a failure on the user side; None for other failures, or if retention removed the verdict."""
    row, verdict = detail.row, detail.verdict
    if row.side != "user" or row.abstained or verdict is None:
        return None
    entry = _differences().get(row.category or "")
    first = next((line for line in verdict.get("evidence") or () if line["role"] == "initiating"), None)
    name = f' "{row.name}"' if row.name else ""
    parts = [f"Your job {row.cluster} / {row.job_id}{name} {display_names.word('status', row.status)}."]
    explanation = str(verdict.get("explanation") or "").partition(" It began with:")[0]
    parts.append(explanation)
    if first is not None:
        of_node = f" of node {first['node']}" if first.get("node") else ""
        what = f"event{of_node}" if first.get("stream") == "node" else "line"
        parts.append(f"It began with this {what}: {strip_colour(str(first['text']))[:LINE]}")
    if verdict.get("own_frame"):
        parts.append(f"In your code: {verdict['own_frame']}")
    if entry is not None:
        parts.append(f"{entry['says']} Please check:")
        parts += [f"- {question}" for question in entry["check"]]
    advice = [str(found["text"]) for found in verdict.get("mitigations") or ()][:2]
    if advice:
        parts.append("Possible mitigations: " + " ".join(advice))
    title = taxonomy.load().causes[row.cause].title if row.cause in taxonomy.load().causes else row.cause
    parts.append(f"(Found by Faultline: {title}, {confidence(row.confidence)} sure. Contest it if it is wrong.)")
    return OwnerMessage(
        "\n".join(str(escape_invisible(part)) for part in parts),
        None if entry is None else str(entry["differs"]),
        "" if entry is None else str(entry["says"]),
        () if entry is None else tuple(entry["check"]),
    )
