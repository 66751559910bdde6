"""What forms and links send: everything is optional text, and an empty field asks nothing."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Query

from service.errors import FieldError, InvalidInput
from service.web.views import Narrowed

Text = Annotated[str | None, Query(max_length=1_000)]
YES_NO = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Scoped:
    """What an overview is narrowed to."""

    since: str | None = None
    until: str | None = None
    cluster: str | None = None
    queue: str | None = None
    team: str | None = None

    def where(self) -> dict[str, str | None]:
        """The names without the times."""
        return {"cluster": self.cluster, "queue": self.queue, "team": self.team}


def scoped(
    since: Text = None, until: Text = None, cluster: Text = None, queue: Text = None, team: Text = None
) -> Scoped:
    """From the URL."""
    return Scoped(since or None, until or None, cluster or None, queue or None, team or None)


def narrowed(
    side: Text = None,
    cause: Text = None,
    symptom: Text = None,
    category: Text = None,
    cluster: Text = None,
    queue: Text = None,
    team: Text = None,
    user: Text = None,
    node: Text = None,
    group: Text = None,
    status: Text = None,
    q: Text = None,
    abstained: Text = None,
    since: Text = None,
    until: Text = None,
) -> Narrowed:
    """The filters of the failures list, from the URL.

    Raises:
        InvalidInput: `abstained` is neither true nor false.
    """
    values = {
        "side": side,
        "cause": cause,
        "symptom": symptom,
        "category": category,
        "cluster": cluster,
        "queue": queue,
        "team": team,
        "user": user,
        "node": node,
        "group": group,
        "status": status,
        "q": q,
    }
    if abstained and abstained not in YES_NO:
        expected = "true or false"
        raise InvalidInput(f"abstained: expected {expected}", (FieldError("abstained", expected, abstained[:40]),))
    return Narrowed(
        {name: text.strip() for name, text in values.items() if text and text.strip()},
        YES_NO.get(abstained or ""),
        since or None,
        until or None,
    )
