"""State of automation in the header of every page."""

from dataclasses import dataclass

from service.errors import FaultlineError
from service.requests.records import Switch
from service.web.pages import display_names
from service.web.services import Services


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
