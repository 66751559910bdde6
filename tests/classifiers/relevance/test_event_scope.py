"""Which part of a node an event or a repair is about, where pods ran, and what several owners report."""

from datetime import UTC, datetime
from typing import Any

import pytest

from classifiers.contracts import NodeEvent
from classifiers.relevance.event_candidates import Reason, Support
from classifiers.relevance.own_names import are_pods_of, nodes_of_pods
from classifiers.relevance.words_in_text import quotes
from tests.classifiers.relevance.test_node_events import END, event, job, judged

NO_INIT = "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x26:0x65:1463)"
NAN = frozenset({"pytorch.nan-function"})
MANY = ("nodes.many-affected",)


@pytest.mark.parametrize(
    ("repair", "is_repaired"),
    [
        ("gpu1: fan tray swapped, back in service", False),
        ("gpu1: two DIMMs replaced, back in service", False),
        ("gpu1: GPU baseboard replaced, back in service", True),
        ("gpu1 reimaged, back in service", True),
    ],
)
def test_a_repair_of_another_part_is_none(repair: str, *, is_repaired: bool) -> None:
    missing = frozenset({"cuda.invalid-device-ordinal"})
    broken = event(NO_INIT, at=-900.0, entries=("nvidia.rminit-failed",))
    seen = job(own_entries=[missing], other_entries=missing, last_progress=None)
    back = event(repair, at=-300.0, source="change", index=1, entries=())
    assert (judged(broken, seen, [back]).reason is Reason.RECOVERED) is is_repaired


def test_a_link_between_gpus_stays_broken_for_jobs_that_start_later() -> None:
    off = frozenset({"nvidia.fabric-manager"})
    fault = event("SXid (PCI:0000:06:00.0): 20034, Fatal", at=-7_200.0, entries=("nvidia.sxid",))
    assert judged(fault, job(own_entries=[off], other_entries=off, last_progress=None)).support is Support.LOG
    assert judged(fault, job()).reason is not None


@pytest.mark.parametrize(("failed", "is_used"), [(None, True), (END - 10, False)])
def test_what_works_again_at_an_unknown_time_of_failure_may_have_ended_the_job(
    failed: float | None, *, is_used: bool
) -> None:
    unreached = frozenset({"python.no-route"})
    down = event("bnxt_en 0000:18:00.0 eno1: NIC Link is Down", at=END - 300, entries=("network.eth-link",))
    back = event("bnxt_en 0000:18:00.0 eno1: NIC Link is Up, 25000 Mbps", at=END - 200, index=1, entries=())
    seen = job(
        own_entries=[], other_entries=unreached, failed=failed, last_progress=END - 400,
        latest_progress=lambda: END - 310,
    )  # fmt: skip
    assert (judged(down, seen, [back]).reason is None) is is_used


def test_lines_of_progress_far_apart_do_not_end_a_run_early() -> None:
    away = event("Node is shutting down", at=END - 60, entries=("kubernetes.node-shutdown",))
    gone = frozenset({"jax.another-task-died"})
    seen: dict[str, Any] = {
        "own_entries": [],
        "other_entries": gone,
        "last_progress": END - 700,
        "nodes": frozenset({"gpu1", "gpu2"}),
    }
    assert judged(away, job(**seen, latest_progress=lambda: END - 70)).reason is None
    assert judged(away, job(**seen)).reason is Reason.LATER


def test_a_broken_gpu_explains_wrong_numbers_on_it_alone() -> None:
    found = event("memtest: fail on GPU 5", at=END + 900, source="dcgm", entries=("nvidia-health.test-failed",))
    line = "found NaN in the gradients of rank 13. Device: 5"
    seen: dict[str, Any] = {"own_entries": [NAN], "other_entries": NAN, "failure_text": lambda: line}
    assert judged(found, job(**seen)).support is Support.LOG
    assert judged(found, job(**seen | {"failure_text": lambda: line.replace("5", "4")})).reason is not None
    assert judged(found, job(**seen, failed_nodes=frozenset({"gpu2"}))).reason is not None


def test_a_disk_of_a_node_whose_processes_did_not_fail_is_not_the_jobs() -> None:
    full = event("/scratch is 100% full", entries=("storage.disk-full-write", "storage.mount-full"))
    no_space = frozenset({"python.no-space"})
    seen: dict[str, Any] = {"own_entries": [no_space], "other_entries": no_space, "nodes": frozenset({"gpu1", "gpu2"})}
    assert judged(full, job(**seen, names_paths=False, failed_nodes=frozenset({"gpu1"}))).reason is None
    assert judged(full, job(**seen, names_paths=False, failed_nodes=frozenset({"gpu2"}))).reason is Reason.OTHER_DEVICE


def test_no_slower_steps_explain_an_error_of_the_program_for_which_others_waited() -> None:
    change = event("security agent 7.4 rolled out", at=END - 3_060, entries=("changes.agents",))
    waited = frozenset({"pytorch.nccl-watchdog-timeout"})
    seen: dict[str, Any] = {
        "own_entries": [frozenset({"python.key-error"})],
        "other_entries": waited,
        "slowed": lambda: END - 3_000,
    }
    assert judged(change, job(**seen)).reason is Reason.NOT_SHOWN
    assert judged(change, job(**seen | {"own_entries": [waited]})).support is Support.SLOWER


def test_jobs_of_several_owners_count_where_they_fail_of_the_same() -> None:
    report = event("9 jobs of 4 teams failed: cannot open shared object file", at=END + 600, entries=MANY)
    own = frozenset({"python.shared-object"})
    seen: dict[str, Any] = {"own_entries": [own], "other_entries": own}
    same = "ImportError: libx.so.2: cannot open shared object file: No such file"
    assert judged(report, job(**seen, failure_text=lambda: same)).support is Support.LOG
    assert judged(report, job(**seen, failure_text=lambda: "ImportError: undefined symbol: f")).reason is not None


def test_a_quotation_is_several_words_in_a_row() -> None:
    assert quotes("pods fail with 'No space left on device'", "OSError: [Errno 28] no space left on device: '/x'")
    assert not quotes("the device has no space", "OSError: [Errno 28] no space left on device: '/x'")


@pytest.mark.parametrize(("error", "is_quoted"), [("ExpiredToken", True), ("RuntimeError", False)])
def test_an_error_is_quoted_by_its_name_unless_any_program_has_it(error: str, *, is_quoted: bool) -> None:
    assert quotes(f"StoreDenied: 29 namespaces report {error}", f"{error}: the call of PutObject failed") is is_quoted


def test_the_nodes_of_a_jobs_pods_are_known_by_events_of_these_pods() -> None:
    at = datetime(2026, 9, 1, 8, tzinfo=UTC)
    events = [
        NodeEvent("Pod was terminated for a shutdown: pod/clip-worker-3", at, "pool-c"),
        NodeEvent("Stopping container main in pod/etl-worker-3", at, "pool-d"),
        NodeEvent("FailedScheduling pod/clip-worker-3: no node fits", at, "pool-e"),
    ]

    def is_own(pods: object) -> bool:
        assert isinstance(pods, frozenset)
        return are_pods_of(pods, None, lambda _: False, lambda: frozenset({"clip"}))

    assert nodes_of_pods(events, is_own) <= {"pool-c"}


def test_an_event_of_a_node_that_ran_a_pod_of_the_job_counts() -> None:
    gone = frozenset({"jax.another-task-died"})
    taken = event("Instance was preempted", node="pool-c", at=END - 30, entries=("cloud.spot",))
    seen: dict[str, Any] = {"own_entries": [], "other_entries": gone, "nodes": frozenset({"pool-a", "pool-b"})}
    assert judged(taken, job(**seen, pod_nodes=lambda: frozenset({"pool-c"}))).reason is None
    assert judged(taken, job(**seen)).reason is Reason.OTHER_NODE


@pytest.mark.parametrize(
    ("line", "later", "is_used"),
    [
        ("FileNotFoundError: '/pool/sets/index.npy'", "node now responding, state IDLE", True),
        ("FileNotFoundError: '/pool/sets/index.npy'", "automount: /pool mounted again", False),
        ("FileNotFoundError: '/home/ana/index.npy'", "node now responding, state IDLE", False),
    ],
)
def test_a_folder_that_was_not_mounted_stays_empty_until_it_is(line: str, later: str, *, is_used: bool) -> None:
    missing = frozenset({"python.file-not-found"})
    event_of_unit = event("Failed to mount /pool.", at=-7_200.0, entries=("mounts.unit-failed",))
    back = event(later, at=-6_000.0, index=1, entries=())
    seen = job(own_entries=[missing], other_entries=missing, last_progress=None, failure_text=lambda: line)
    assert (judged(event_of_unit, seen, [back]).reason is None) is is_used
