"""What the head of every page says of automation: on or stopped, and how much is held."""

from dataclasses import dataclass

from service.errors import FaultlineError
from service.requests.records import Switch
from service.web.pages import display_names
from service.web.services import Services


@dataclass(frozen=True, slots=True)
class AutomationBanner:
    """The switch, requests held and waiting, and open incidents."""

    switch: Switch
    held: int
    waiting: int
    incidents: int


def automation_banner(services: Services) -> AutomationBanner | None:
    """How automation stands; None where the database does not answer, since this must not break an error's page."""
    try:
        with services.store.reading() as reading:
            counts = reading.requests.count_open()
            return AutomationBanner(
                reading.kill_switch.get(),
                counts.get("held", 0),
                counts.get("waiting", 0) + counts.get("leased", 0),
                len(reading.incidents.opened()),
            )
    except FaultlineError:
        return None


def message(code: str | None) -> str | None:
    """What a page says after a form of automation was sent; None for what no such form says."""
    found = display_names.table()["automation_notice"].get(code or "")
    return None if found is None else str(found)
