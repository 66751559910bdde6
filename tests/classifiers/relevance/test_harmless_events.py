"""Events that an operator would wave off are set aside, and the same trouble without the excuse is not."""

from typing import Any, Final

import pytest

from classifiers.relevance.event_candidates import Reason, Support
from tests.classifiers.relevance.test_node_events import END, PEER_GONE, event, job, judged

POWER = "Sensor PS-B: power supply failed"
PSU = ("kernel.power-psu",)
DISK = ("storage.ext4",)
DISK_ERROR = "EXT4-fs error (device sdq2): htree_dirblock_to_tree: inode #2: comm tar: bad entry in directory"
NO_LOG: Final[dict[str, Any]] = {"own_entries": [], "other_entries": frozenset(), "failed": None}


def test_a_power_supply_alone_ends_no_job_and_one_of_two_explains_no_lost_process() -> None:
    waiting = job(own_entries=[], other_entries=PEER_GONE, failed=None)
    assert judged(event(POWER, entries=PSU, source="bmc"), job(**NO_LOG)).reason is Reason.NO_TRACE
    lost = event(POWER, entries=PSU, source="bmc")
    assert judged(lost, waiting).reason is None
    other = event("PSU bank: redundancy degraded, load on PS-A", at=END - 18, index=1, entries=())
    assert judged(lost, waiting, [other]).reason is Reason.OTHER_DEVICE
    down = event("Redundancy lost, insufficient resources, power down", at=END - 18, index=1, entries=())
    assert judged(lost, waiting, [down]).reason is None


@pytest.mark.parametrize(
    "beside", ["fuser: no file of this job is on sdq2", "sdq2 is a removable drive of the site staff"]
)
def test_a_broken_disk_on_which_the_job_has_nothing_is_another_device(beside: str) -> None:
    read_only = job(own_entries=[frozenset({"python.read-only"})], names_paths=False)
    told = event(beside, at=END - 5, source="nhc", index=1, entries=())
    assert judged(event(DISK_ERROR, entries=DISK), read_only).support is Support.LOG
    assert judged(event(DISK_ERROR, entries=DISK), read_only, [told]).reason is Reason.OTHER_DEVICE


def test_a_full_file_system_that_has_room_again_has_recovered() -> None:
    full = event("/scratch is 100% full", at=END - 3_000, source="check_disk", entries=("storage.mount-full",))
    no_space = job("/scratch", own_entries=[frozenset({"python.no-space"})])
    assert judged(full, no_space).support is Support.LOG
    freed = event("/scratch: 62 % used, old files removed", at=END - 2_000, source="check_disk", index=1, entries=())
    assert judged(full, no_space, [freed]).reason is Reason.RECOVERED
    worse = event("/scratch: 98 % used", at=END - 2_000, source="check_disk", index=1, entries=())
    assert judged(full, no_space, [worse]).support is Support.LOG


def test_a_full_file_system_kills_no_process() -> None:
    killed = job("/var", own_entries=[], other_entries=frozenset({"shell.exit-137"}), failed=None)
    assert judged(event("/var is 100% full", entries=("events.disk-full",)), killed).reason is Reason.NO_TRACE


@pytest.mark.parametrize(
    "repair", ["burn-in of the board: 6 h, 0 errors", "GPU 4 withdrawn from the pool", "dcgmi diag -r 4 on GPU 4: Pass"]
)
def test_a_device_that_was_tested_or_is_no_longer_offered_troubles_no_later_job(repair: str) -> None:
    busy = job(own_entries=[frozenset({"cuda.busy-unavailable"})], started=END - 4_000)
    lost = event(at=END - 9_000)
    repaired = event(repair, at=END - 6_000, source="ops", index=1, entries=())
    assert (judged(lost, busy).reason, judged(lost, busy, [repaired]).reason) == (None, Reason.RECOVERED)


def test_one_long_step_is_no_job_that_became_slow() -> None:
    store = event("pool p1 degraded", at=END - 30, node="gpu1", source="store", entries=("storage.degraded",))
    short = job(**NO_LOG, slowed=lambda: END - 20)
    long = job(**NO_LOG, slowed=lambda: END - 900)
    assert judged(store, short).reason is Reason.NO_TRACE
    assert (
        judged(event("pool p1 degraded", at=END - 910, entries=("storage.degraded",)), long).support is Support.SLOWER
    )


def test_a_node_reports_at_once_what_its_controller_reports_late() -> None:
    waiting = job(own_entries=[], other_entries=PEER_GONE, failed=None)
    panic = event("Kernel panic - not syncing: hung tasks", at=END + 400, entries=("kernel.panic",))
    assert judged(panic, waiting).reason is Reason.LATER
    away = event("Node gpu1 is not ready", at=END + 400, source="kubelet", entries=("kubernetes.node-lost",))
    assert judged(away, waiting).reason is None


def test_a_port_with_errors_is_less_than_one_that_went_down() -> None:
    reset = job(own_entries=[], other_entries=frozenset({"python.connection-reset"}), failed=None)
    errors = event("mlx5_3: receive errors rise", entries=("adapters.bit-errors",))
    down = event("mlx5_core mlx5_3: Port: 1 Link DOWN", entries=("network.ib-link-down",))
    assert judged(errors, reset).support is not Support.LOG
    assert judged(down, reset).support is Support.LOG


@pytest.mark.parametrize(
    ("text", "entries", "failure"),
    [
        ("chronyd: System clock wrong by 0.012 seconds", ("platform-services.clock-wrong",), "service.clock-skew"),
        ("kernel: NVRM: Xid (PCI:0000:1a:00): 63, Row Remapper: row added", ("nvidia.xid-64",), "cuda.unknown-error"),
        ("SXid (PCI:0000:c1:00): 24006, Non-fatal, Link 7 error", ("nvidia.sxid",), "cuda.unknown-error"),
        ("pcieport 0000:20:01: AER: Uncorrected (Non-Fatal) error", ("kernel.pcie-aer",), "cuda.unknown-error"),
        ("usb-storage 2-1: I/O error, dev sdx, sector 8", ("storage.device-io-error",), "python.io-error"),
        ("logrotate.service: Failed with result 'exit-code'", ("platform-services.daemon-failed",), "slurm.munge"),
    ],
)
def test_what_a_device_or_service_goes_on_after_is_harmless_and_the_graver_form_is_not(
    text: str, entries: tuple[str, ...], failure: str
) -> None:
    seen = job(own_entries=[frozenset({failure})])
    graver = {"0.012": "412.5", ": 63,": ": 64,", "Non-fatal": "Fatal", "Non-Fatal": "Fatal", "usb-storage 2-1": "scsi",
              "logrotate": "munge"}  # fmt: skip
    assert judged(event(text, entries=entries), seen).reason is Reason.CORRECTED
    for harmless, grave in graver.items():
        text = text.replace(harmless, grave)
    assert judged(event(text, entries=entries), seen).reason is None


def test_a_kill_in_a_session_of_a_login_is_none_of_the_job() -> None:
    seen = job(own_entries=[frozenset({"shell.killed"})])
    killed = "session-12.scope: A process of this unit has been killed by the OOM killer"
    entries = ("events.memory-kill",)
    assert judged(event(killed, entries=entries), seen).reason is Reason.OTHER_PROCESS
    assert judged(event(killed.replace("session-12.scope", "step_0"), entries=entries), seen).reason is None


def test_a_quota_of_somebody_else_explains_no_full_quota() -> None:
    cut = event("quota of dmiller on /proj lowered", entries=("changes.quota",), source="change")
    full: dict[str, Any] = {"own_entries": [frozenset({"python.quota"})]}
    assert judged(cut, job(**full)).reason is Reason.OTHER_PROCESS
    assert judged(cut, job("/proj/dmiller/run.pt", **full)).reason is None
    assert judged(cut, job(owners=frozenset({"dmiller"}), **full)).reason is None
    everybody = event("quota of all users on /proj lowered", entries=("changes.quota",), source="change")
    assert judged(everybody, job(**full)).reason is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"job_numbers": lambda: frozenset({"977"})}, Reason.OTHER_PROCESS),
        ({"of_batch_system": False}, Reason.OTHER_PROCESS),
        ({}, None),
        ({"own_entries": [], "other_entries": PEER_GONE, "failed": None}, Reason.OTHER_PROCESS),
    ],
)
def test_of_a_job_without_a_number_the_logs_or_the_failure_tell_whose_kill_it_is(
    changes: dict[str, Any], reason: Reason | None
) -> None:
    kill = event("slurmstepd: error: Detected 1 oom_kill event in StepId=815.0", entries=("slurm.oom",))
    values: dict[str, Any] = {"job_id": "night-run", "own_entries": [frozenset({"shell.killed"})]} | changes
    assert judged(kill, job(**values)).reason is reason
    assert judged(kill, job("STEP 815.0 ended", **values)).reason is None


def test_a_number_of_two_digits_is_no_version_that_a_log_names() -> None:
    change = event("readahead set to 64 on every node", entries=("changes.storage",), source="change")
    seen: dict[str, Any] = {"own_entries": [frozenset({"python.file-not-found"})]}
    assert judged(change, job("batch 64 of 900", **seen)).reason is not None
    newer = event("client 2.15.4 -> 2.16.1", entries=("changes.storage",), source="change")
    assert judged(newer, job("client 2.16.1 loaded", **seen)).reason is None
