"""The pages in the header, in three groups, and the time range that links keep."""

from collections.abc import Mapping
from typing import Protocol

TIME_RANGES = {"24h": "last 24 h", "7d": "last 7 days", "28d": "last 28 days"}
_LONGEST = 60  # characters of a time in a link
Link = tuple[str, str, bool]  # address, label, whether the page has a time range
TRIAGE: tuple[Link, ...] = (
    ("/", "Overview", True),
    ("/failures", "Failures", True),
    ("/groups", "Groups", False),
    ("/incidents", "Incidents", False),
)
FLEET: tuple[Link, ...] = (
    ("/nodes", "Nodes", False),
    ("/automation", "Automation", False),
    ("/goodput", "Goodput", True),
    ("/reports", "Reports", False),
)
QUALITY: tuple[Link, ...] = (
    ("/model", "Model", False),
    ("/feedback", "Feedback", False),
    ("/signatures", "Signatures", False),
    ("/dead-letters", "Dead letters", False),
)


class Caller(Protocol):
    """What navigation needs of the authenticated caller (service.web.auth.Principal, which imports this package)."""

    @property
    def via(self) -> str:
        """How the caller is authenticated; open: not at all."""

    def may(self, scope: str) -> bool:
        """Whether a scope is granted."""


def navigation(principal: Caller) -> tuple[tuple[str, tuple[Link, ...]], ...]:
    """The groups of pages that a person sees."""
    mine: tuple[Link, ...] = () if principal.via == "open" else (("/mine", "My failures", False),)
    settings: tuple[Link, ...] = (("/settings", "Settings", False),) if principal.may("admin") else ()
    return (("Triage", TRIAGE + mine), ("Fleet", FLEET), ("Quality", QUALITY + settings))


def period(parameters: Mapping[str, str]) -> dict[str, str]:
    """The time range of the URL."""
    return {name: parameters[name][:_LONGEST] for name in ("since", "until") if parameters.get(name)}
