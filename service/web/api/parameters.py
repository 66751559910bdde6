"""Query parameters that several lists share."""

from typing import Annotated, Literal

from fastapi import Query

from service.web.times import When
from service.web.views import Narrowed

Limit = Annotated[int, Query(ge=1, le=500, description="how many at most")]
Cursor = Annotated[str | None, Query(max_length=1_000, description="`next_cursor` of the page before")]
Since = Annotated[When | None, Query(description="ended at or after")]
Until = Annotated[When | None, Query(description="ended before")]
Text = Annotated[str | None, Query(max_length=200)]
Names = Literal[
    "side", "cause", "symptom", "category", "cluster", "queue", "team", "user", "node", "group", "status", "q"
]


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
    group: Annotated[str | None, Query(max_length=200, description="a fingerprint")] = None,
    status: Text = None,
    q: Annotated[str | None, Query(max_length=200, description="words that all stand in the evidence")] = None,
    abstained: Annotated[bool | None, Query(description="whether the verdict was left open")] = None,
    since: Since = None,
    until: Until = None,
) -> Narrowed:
    """The filters of the failures list; an empty one asks nothing, as in a form that was left blank."""
    texts: dict[Names, str | None] = {
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
    return Narrowed({name: text for name, text in texts.items() if text}, abstained, since, until)
