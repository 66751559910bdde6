from tests.chaos import redundancy
from tests.chaos.faults import FAULTS, drawn


def test_the_same_seed_draws_the_same_faults_and_partitions_only_an_own_network() -> None:
    assert drawn(7, 50, isolated=True) == drawn(7, 50, isolated=True) != drawn(8, 50, isolated=True)
    assert "partition" in drawn(7, 200, isolated=True)
    assert "partition" not in drawn(7, 200, isolated=False)
    assert set(drawn(7, 500, isolated=True)) <= set(FAULTS)


def test_the_faults_of_redundant_servers_need_these_servers() -> None:
    both = redundancy.drawn(7, 50, replica=True, brokers=True)
    assert both == redundancy.drawn(7, 50, replica=True, brokers=True)
    assert set(both) == {redundancy.FAIL_OVER, redundancy.LEADER}
    assert redundancy.drawn(7, 2, replica=True, brokers=False) == [redundancy.FAIL_OVER] * 2
