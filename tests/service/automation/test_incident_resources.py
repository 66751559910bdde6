"""An incident that a person opens is over the resource that failures name, however the person writes it."""

import pytest

from service.db.session import Store
from tests.service.automation.world import outage, world
from tests.service.frozen_clock import FrozenClock


@pytest.mark.parametrize("value", ["/scratch/", " /scratch", "/scratch"])
def test_slashes_and_blanks_around_a_file_system_do_not_count(store: Store, clock: FrozenClock, value: str) -> None:
    here = world(store, clock)
    opened = here.automation.open_incident("orion", "file_system", value, "ana", None)
    assert opened.value == "/scratch"
    here.tell(*outage(0, 2))
    assert {request.incident_id for request in here.requests("held")} == {opened.id}


def test_letters_of_hosts_do_not_count(store: Store, clock: FrozenClock) -> None:
    opened = world(store, clock).automation.open_incident("orion", "registry", "Registry.Example:5000", "ana", None)
    assert opened.value == "registry.example:5000"
