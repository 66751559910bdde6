"""A switch that fails jobs is found by the stored places of nodes, where events of jobs name no topology."""

import pytest

from service.formats import node_events
from service.incidents.repository.incident_signals import MOST_SIGNALS
from service.nodes.event_intake import NodeEventIntake
from service.nodes.records import FleetSettings, NodeReport
from service.nodes.statistics_updater import NodeStatisticsUpdater
from tests.service.automation.world import World, job

LEAVES = b"SwitchName=leaf3 Level=0 LinkSpeed=1 Nodes=gpu[1-8]"


def reported(here: World, line: bytes, cluster: str = "orion") -> None:
    """Jobs have ended on all nodes, and the scheduler has reported its topology."""
    here.tell(job("0", nodes=[f"gpu{n}" for n in range(1, 17)]))
    NodeStatisticsUpdater(here.store, here.clock, FleetSettings())()
    report = node_events.parse(line, cluster=cluster)
    assert isinstance(report, NodeReport)
    NodeEventIntake(here.store, here.clock, FleetSettings()).handle([report])


def failures(here: World, nodes: list[tuple[int, int]]) -> list[tuple[str, str]]:
    """Fail a job on each pair of nodes; the incidents that this opens."""
    line = "ncclRemoteError: connection reset by peer"
    here.tell(*(job(str(n), line, user=f"user{n}", nodes=[f"gpu{m}" for m in on]) for n, on in enumerate(nodes, 1)))
    with here.store.reading() as reading:
        return [(one.kind, one.value) for one in reading.incidents.opened()]


@pytest.mark.parametrize("times", [1, 2])
def test_jobs_on_nodes_of_one_switch_are_one_incident_of_this_switch(here: World, times: int) -> None:
    for _ in range(times):
        reported(here, LEAVES)
    assert failures(here, [(n, m) for n in range(1, 5) for m in range(5, 7)]) == [("switch", "leaf3")]


def test_jobs_that_also_use_another_switch_are_no_incident_of_this_switch(here: World) -> None:
    reported(here, LEAVES)
    assert ("switch", "leaf3") not in failures(here, [(n, m) for n in range(1, 5) for m in range(9, 11)])


def test_places_of_another_cluster_do_not_count(here: World) -> None:
    reported(here, LEAVES, cluster="lyra")
    assert ("switch", "leaf3") not in failures(here, [(n, m) for n in range(1, 5) for m in range(5, 7)])


def test_more_failures_of_a_batch_than_the_latest_that_are_read_are_one_incident(here: World) -> None:
    """A switch that fails hundreds of jobs at once is one incident, not one more for each of its racks."""
    count = MOST_SIGNALS + 40
    line = "ncclRemoteError: connection reset by peer"
    places = {f"gpu{n}": {"switch": "core1", "rack": f"r{n % 4}"} for n in range(count)}
    here.tell(*(job(str(n), line, user=f"user{n}", nodes=[node], topology=places) for n, node in enumerate(places)))
    with here.store.reading() as reading:
        assert [(one.kind, one.value, one.jobs) for one in reading.incidents.opened()] == [("switch", "core1", count)]
    assert len(here.messages("incident.opened")) == 1


@pytest.mark.parametrize(("nodes", "expected"), [(4, [("switch", "leaf1")]), (2, [("node", "gpu0"), ("node", "gpu1")])])
def test_many_small_jobs_on_several_nodes_of_one_switch_are_one_incident_of_this_switch(
    here: World, nodes: int, expected: list[tuple[str, str]]
) -> None:
    """A leaf switch with eight jobs on each of its nodes is one incident, not one for each node."""
    line = "ncclRemoteError: connection reset by peer"
    here.tell(
        *(
            job(
                f"{node}-{n}",
                line,
                user=f"user{n}",
                nodes=[f"gpu{node}"],
                topology={f"gpu{node}": {"switch": "leaf1", "rack": f"r{node // 2}"}},
            )
            for node in range(nodes)
            for n in range(8)
        )
    )
    with here.store.reading() as reading:
        assert sorted((one.kind, one.value) for one in reading.incidents.opened()) == expected
