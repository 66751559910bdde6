"""State of automation in the header of every page."""

from dataclasses import dataclass

from service.errors import FaultlineError
from service.requests.records import Switch
from service.web.pages import display_names
from service.web.services import Services


@dataclass(frozen=True, slots=True)
class AutomationBanner:
    """Kill switch, held and waiting requests, and open incidents."""

    switch: Switch
    held: int
    waiting: int
    incidents: int


def automation_banner(services: Services) -> AutomationBanner | None:
    """State of automation; None if the database does not answer, so that error pages still render."""
    try:
        with services.reading() as reading:
            counts = reading.requests.count_open()
            return AutomationBanner(
                reading.kill_switch.get(),
                counts.get("held", 0),
                counts.get("waiting", 0) + counts.get("leased", 0),
                reading.incidents.count_opened(),
            )
    except FaultlineError:
        return None


def message(code: str | None) -> str | None:
    """The message shown after an automation form was submitted; None for an unknown code."""
    found = display_names.table()["automation_notice"].get(code or "")
    return None if found is None else str(found)
