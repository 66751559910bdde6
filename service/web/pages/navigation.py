"""The header of every page: the pages of the navigation, the time range that links keep, the state of automation."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from service.errors import FaultlineError
from service.resubmissions.records import Switch
from service.web.pages import display_names
from service.web.services import Services

_LONGEST = 60  # characters of a time in a link
Link = tuple[str, str, bool]  # address, label, whether the page has a time range
_WITHIN = {"/deliveries": "/dead-letters"}  # a page that is a tab of one of the navigation
OWN_JOBS: tuple[Link, ...] = (("/failures", "My failures", True),)
TRIAGE: tuple[Link, ...] = (
    ("/", "Overview", True),
    ("/failures", "Failures", True),
    ("/groups", "Groups", True),
    ("/incidents", "Incidents", True),
)
FLEET: tuple[Link, ...] = (
    ("/nodes", "Nodes", True),
    ("/automation", "Automation", True),
    ("/goodput", "Goodput", True),
    ("/reports", "Reports", False),
)
QUALITY: tuple[Link, ...] = (
    ("/model", "Model", False),
    ("/feedback", "Feedback", False),
    ("/signatures", "Signatures", False),
    ("/dead-letters", "Dead letters", False),
)
ADMINISTRATION: tuple[Link, ...] = (("/settings", "Settings", False), ("/audit-log", "Audit log", False))


@dataclass(frozen=True, slots=True)
class Ranges:
    """The time ranges that the header of a page offers; `default`: the one of a page without a time in its URL."""

    default: str
    choices: Mapping[str, str]


_USUAL = {"1h": "last 1 h", "24h": "last 24 h", "7d": "last 7 days", "28d": "last 28 days"}
PAGES_WITH_RANGES = {
    "/": Ranges("24h", _USUAL),
    "/failures": Ranges("", _USUAL),
    "/groups": Ranges("", _USUAL),
    "/incidents": Ranges("", _USUAL),
    "/audit-log": Ranges("", _USUAL),
    "/automation": Ranges("28d", {"24h": "last 24 h", "7d": "last 7 days", "28d": "last 28 days"}),
    "/goodput": Ranges("28d", {"7d": "last 7 days", "28d": "last 28 days", "91d": "last 13 weeks"}),
}


_OF_A_NODE = Ranges("", _USUAL)


def ranges_of(path: str) -> Ranges | None:
    """The time ranges of the page with this path; None if it has no period."""
    return _OF_A_NODE if path.startswith("/nodes/") else PAGES_WITH_RANGES.get(path)


class Caller(Protocol):
    """What navigation needs of the authenticated caller (service.web.auth.Principal, which imports this package)."""

    @property
    def via(self) -> str:
        """How the caller is authenticated; open: not at all."""

    def may(self, scope: str) -> bool:
        """Whether a scope is granted."""


def navigation(principal: Caller) -> tuple[tuple[str, tuple[Link, ...]], ...]:
    """The groups of pages that a person may open: who sees single jobs only has one list."""
    if not principal.may("read"):
        return (("Your jobs", OWN_JOBS),)
    mine: tuple[Link, ...] = () if principal.via == "open" else (("/mine", "My failures", False),)
    admin = ADMINISTRATION if principal.may("admin") else ()
    return (("Triage", TRIAGE + mine), ("Fleet", FLEET), ("Quality", QUALITY + admin))


def page_of_area(principal: Caller | None, path: str) -> tuple[Link, ...]:
    """The page of the navigation to which a path belongs, if the caller has it."""
    if principal is None:
        return ()
    wanted = area(path)
    return tuple(one for _, pages in navigation(principal) for one in pages if one[0] == wanted)[:1]


def period(parameters: Mapping[str, str]) -> dict[str, str]:
    """The time range of the URL."""
    return {name: parameters[name][:_LONGEST] for name in ("since", "until") if parameters.get(name)}


def area(path: str) -> str:
    """The page of the navigation to which a path belongs: /groups for /groups/7, /dead-letters for /deliveries."""
    first = "/" + path.split("/", 2)[1]
    return _WITHIN.get(first, first)


def moment(text: str, zone: ZoneInfo) -> str:
    """A time of the URL as the header shows it: short in the time zone of the pages, or as it was typed."""
    try:
        at = datetime.fromisoformat(text)
        return f"{at.astimezone(zone) if at.tzinfo else at:%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return text[:40]


@dataclass(frozen=True, slots=True)
class AutomationBanner:
    """Kill switch, and the number of held requests."""

    switch: Switch
    held: int


def automation_banner(services: Services) -> AutomationBanner | None:
    """State of automation; None if the database does not answer, so that error pages still render."""
    try:
        with services.reading() as reading:
            return AutomationBanner(reading.kill_switch.get(), reading.requests.count_held())
    except FaultlineError:
        return None


def message(code: str | None) -> str | None:
    """The message shown after an automation form was submitted; None for an unknown code."""
    found = display_names.table()["automation_notice"].get(code or "")
    return None if found is None else str(found)
