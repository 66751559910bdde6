"""The table of processes that the kernel prints tells who held the memory."""

import pytest

from classifiers.extraction.events.memory_tables import holds_more_than_killed

KILLED = "Out of memory: Killed process 812 (python3) total-vm:9kB, anon-rss:8kB, file-rss:0kB"


def row(pid: int, rss: int, name: str) -> str:
    return f"[{pid:7d}]  1000 {pid} 99000000 {rss:8d}        0 1200000        0             0 {name}"


@pytest.mark.parametrize(
    ("held", "is_other"), [(900_000, True), (150_000, False)], ids=["several times as much", "about as much"]
)
def test_the_table_of_the_kernel_tells_who_held_the_memory(held: int, *, is_other: bool) -> None:
    rows = [row(812, 60_000, "python3"), row(813, 40_000, "python3"), row(99, held, "collectd")]
    assert holds_more_than_killed([*rows, KILLED]) is is_other
    assert not holds_more_than_killed(rows)


@pytest.mark.parametrize(
    ("killed", "is_other"),
    [("Out of memory: Killed", True), ("Memory cgroup out of memory: Killed", False)],
    ids=["the node was full", "its own limit was reached"],
)
def test_without_a_row_of_the_killed_process_its_message_says_what_it_held(killed: str, *, is_other: bool) -> None:
    message = f"{killed} process 812 (python3) total-vm:9000000kB, anon-rss:4000000kB, file-rss:0kB"
    assert holds_more_than_killed([row(99, 9_000_000, "collectd"), message]) is is_other
    assert not holds_more_than_killed([row(99, 7_000_000, "collectd"), message])  # eight of them could hold as much
