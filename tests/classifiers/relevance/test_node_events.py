"""Which node events count as evidence: one test for each question, and the order of what supports an event."""

from collections.abc import Sequence
from typing import Any

import pytest

from classifiers import signatures
from classifiers.relevance import event_objects, event_rules
from classifiers.relevance.event_candidates import JobEvidence, Judgement, MatchedEvent, Reason, Support
from classifiers.relevance.event_objects import read_objects
from classifiers.relevance.node_events import judge

END = 10_000.0
XID_79 = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
STALLED = ("storage.nfs-not-responding",)
GPU_LOST = ("nvidia.xid-79", "nvidia.off-the-bus")
CUDA_ERROR = frozenset({"cuda.unknown-error"})
PEER_GONE = frozenset({"wordings.peer-gone"})


def job(log: str = "", **changes: Any) -> JobEvidence:
    values: dict[str, Any] = {
        "nodes": frozenset({"gpu1"}),
        "job_id": "4711",
        "status": "failed",
        "own_entries": [CUDA_ERROR],
        "other_entries": CUDA_ERROR,
        "started": 0.0,
        "last_progress": END - 60,
        "failed": END - 10,
        "ended": END,
        "mentions": lambda name: name in log,
    }
    return JobEvidence(**(values | changes))


def event(text: str = XID_79, *, at: float = END - 20, node: str = "gpu1", source: str = "kernel", index: int = 0,
          entries: tuple[str, ...] = GPU_LOST) -> MatchedEvent:  # fmt: skip
    return MatchedEvent(index, text, node, source, at, entries)


def judged(one: MatchedEvent, seen: JobEvidence, others: Sequence[MatchedEvent] = ()) -> Judgement:
    return judge([one], [one, *others], seen)[0]


@pytest.mark.parametrize(("program", "reason"), [("nvidia-smi", None), ("jupyter-lab", Reason.OTHER_PROCESS)])
def test_a_monitor_that_meets_the_fault_of_a_device_says_nothing_of_who_uses_it(
    program: str, reason: Reason | None
) -> None:
    text = f"NVRM: Xid (PCI:0000:ad:00): 119, pid=1829, name={program}, Timeout after 6s of waiting for RPC response"
    assert judged(event(text, entries=("nvidia.xid-119",)), job()).reason is reason


def test_an_event_that_the_log_confirms_is_used() -> None:
    found = judged(event(), job())
    assert (found.reason, found.support) == (None, Support.LOG)


@pytest.mark.parametrize(
    ("changed", "seen", "reason"),
    [
        ({"node": "gpu7"}, {}, Reason.OTHER_NODE),
        ({"at": END - 5_000}, {}, Reason.LONG_BEFORE),
        ({"at": END - 400}, {}, Reason.SURVIVED),
        ({"at": END + 3_000}, {}, Reason.LATER),
        ({}, {"own_entries": [frozenset({"python.key-error"})], "other_entries": frozenset()}, Reason.NOT_SHOWN),
        ({"text": XID_79 + " (GPU 3 is not allocated)"}, {}, Reason.CORRECTED),
    ],
)  # fmt: skip
def test_an_answer_against_an_event_sets_it_aside(
    changed: dict[str, Any], seen: dict[str, Any], reason: Reason
) -> None:
    assert judged(event(**changed), job(**seen)).reason is reason


@pytest.mark.parametrize(
    ("after_s", "own", "reason"),
    [
        (900.0, CUDA_ERROR, None),
        (900.0, frozenset({"python.key-error"}), Reason.LATER),
        (2 * 86_400.0, CUDA_ERROR, Reason.LATER),
    ],
)
def test_a_gauge_that_was_read_after_the_failure_shows_what_was_before(
    after_s: float, own: frozenset[str], reason: Reason | None
) -> None:
    """The exporter's gauge keeps the last Xid; the time is that of the reading."""
    gauge = event("Xid 79: GPU has fallen off the bus", at=END + after_s, source="dcgm-exporter")
    seen = job(own_entries=[own], other_entries=own)
    assert judged(gauge, seen).reason is reason
    assert judged(event(at=END + after_s), seen).reason is Reason.LATER


@pytest.mark.parametrize(
    ("before_s", "causes", "is_used"),
    [(20.0, {"SYS.5"}, True), (400.0, {"SYS.5"}, False), (20.0, {"HW.GPU.2"}, False), (20.0, {"USER.1"}, False)],
)
def test_an_event_counts_where_an_error_that_may_have_its_cause_follows_at_once(
    before_s: float, causes: set[str], *, is_used: bool
) -> None:
    missing = frozenset({"python.file-not-found"})
    seen = job(own_entries=[missing], other_entries=missing, own_causes=frozenset({"USER.1", "SYS.5"}))
    unmounted = MatchedEvent(
        0, "nfs: server nas1 not responding", "gpu1", "agent", END - 10 - before_s, STALLED, frozenset(causes)
    )
    assert (judged(unmounted, seen).reason is None) is is_used


def test_an_event_of_another_node_counts_where_the_log_names_that_node() -> None:
    assert judged(event(node="gpu7"), job("lost connection to gpu7")).reason is None


def test_a_node_that_was_repaired_before_the_job_began_is_not_blamed() -> None:
    back = event("node gpu1 returned to service", at=END - 15, source="slurm", index=1, entries=())
    assert judged(event(), job(), [back]).reason is Reason.RECOVERED


def test_a_controller_that_names_a_node_may_report_its_repair() -> None:
    back = event("node gpu1 returned to service, board replaced", at=END - 15, node="ctl1", index=1, entries=())
    other = event("node gpu11 returned to service, board replaced", at=END - 15, node="ctl1", index=1, entries=())
    assert judged(event(), job(), [back]).reason is Reason.RECOVERED
    assert judged(event(), job(), [other]).reason is None


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("cuda.invalid-device-ordinal", None),
        ("cuda.unknown-error", Reason.LONG_BEFORE),  # a job that starts later does not get the lost device
    ],
)
def test_a_lost_device_is_missing_until_it_is_repaired(entry: str, reason: Reason | None) -> None:
    seen = job(own_entries=[frozenset({entry})], started=END - 30, last_progress=None)
    lost = event(XID_79.replace("'<unknown>'", "811").replace("<unknown>", "nvidia-smi"), at=END - 9_000)
    assert judged(lost, seen).reason is reason
    assert judged(event(at=END - 9_000), seen).reason is reason
    healthy = event("gpu health check pass (8/8)", at=END - 4_000, source="prolog", index=1, entries=())
    assert judged(event(at=END - 9_000), seen, [healthy]).reason is Reason.RECOVERED


def test_a_port_that_the_log_does_not_use_is_another_device() -> None:
    seen = job(own_entries=[], other_entries=PEER_GONE, ports=frozenset({"mlx5_0"}))
    down = event("infiniband mlx5_7: Port: 1 Link DOWN", entries=("network.ib-link-down",))
    assert judged(down, seen).reason is Reason.OTHER_DEVICE


FAILED_BY_MLX5_0 = (
    "NET/IB : Got completion from peer 10.0.0.2<4242> with status=12 opcode=0 vendor err 129 hca mlx5_0\n"
)


@pytest.mark.parametrize(
    ("line", "down", "at", "reason"),
    [
        (FAILED_BY_MLX5_0, "infiniband mlx5_7: Port: 1 Link DOWN", {}, Reason.OTHER_PORT),
        (
            "mlx5_0:1/IB: Transport retry count exceeded on mlx5_0:1/IB",
            "mlx5_7: Port: 1 Link DOWN",
            {},
            Reason.OTHER_PORT,
        ),
        (FAILED_BY_MLX5_0, "infiniband mlx5_0: Port: 1 Link DOWN", {}, None),
        (FAILED_BY_MLX5_0, "mlx5_core 0000:81:00.0 ib3: Link down", {}, None),
        ("NCCL error: remote process exited", "infiniband mlx5_7: Port: 1 Link DOWN", {}, None),
        (
            FAILED_BY_MLX5_0,
            "infiniband mlx5_7: Port: 1 Link DOWN",
            {"nodes": {"gpu1", "gpu2"}, "failed_nodes": {"gpu2"}},
            None,
        ),
        (
            FAILED_BY_MLX5_0,
            "infiniband mlx5_7: Port: 1 Link DOWN",
            {"nodes": {"gpu1", "gpu2"}, "failed_nodes": {"gpu1"}},
            Reason.OTHER_PORT,
        ),
        (FAILED_BY_MLX5_0, "infiniband mlx5_7: Port: 1 Link DOWN", {"has_more_nodes": True}, None),
    ],
)
def test_a_port_beside_the_one_that_failed_is_set_aside(
    line: str, down: str, at: dict[str, Any], reason: Reason | None
) -> None:
    """Where no log lists the ports that it uses, the line of the failure may name the one that failed."""
    entries = frozenset({"network.ib-completion-12"})
    places: dict[str, Any] = {name: frozenset(value) if isinstance(value, set) else value for name, value in at.items()}
    seen = job(own_entries=[entries], other_entries=entries, failure_text=lambda: line, **places)
    assert judged(event(down, entries=("network.ib-link-down",)), seen).reason is reason


def test_a_process_of_another_job_explains_nothing() -> None:
    seen = job(own_entries=[frozenset({"shell.killed"})])
    text = "Memory cgroup out of memory: Killed process 99 (python), task_memcg=/slurm/uid_5/job_815/step_0"
    oom = event(text, entries=("kernel.oom-cgroup",))
    assert judged(oom, seen).reason is Reason.OTHER_PROCESS
    own = event(text.replace("815", "4711"), entries=("kernel.oom-cgroup",))
    assert judged(own, seen).support is Support.LOG


def test_an_event_that_names_a_process_of_the_log_is_shown_by_it() -> None:
    other = frozenset({"python.key-error"})
    fault = event("NVRM: Xid (PCI:0000:3b:00): 31, pid=5150, name=python, Ch 00000008", entries=("nvidia.xid-31",))
    for log in ("started worker (pid: 5150) on gpu1\n", "local rank 3, pid=5150 exited\n"):
        assert judged(fault, job(log, own_entries=[other], other_entries=frozenset())).support is Support.LOG
    for log in ("started worker (pid: 77) on gpu1\n", "step 5150 loss 2.1\n"):
        assert judged(fault, job(log, own_entries=[other], other_entries=frozenset())).reason is not None


def test_what_a_second_event_says_of_the_same_process_counts() -> None:
    seen = job(own_entries=[frozenset({"cuda.illegal-access"})])
    fault = event("NVRM: Xid (PCI:0000:3b:00): 31, pid=5150, name=python, Ch 00000008", entries=("nvidia.xid-31",))
    owner = event("[815.batch] done with job, pid 5150 belonged to StepId=815.0", at=END - 15, index=1, entries=())
    assert judged(fault, seen).reason is None
    assert judged(fault, seen, [owner]).reason is Reason.OTHER_PROCESS


def test_the_process_that_serves_a_mount_is_of_the_node_and_counts_all_the_same() -> None:
    text = "Memory cgroup out of memory: Killed process 99 (gcsfuse), task_memcg=/kubepods/pod7"
    entries = ("kernel.oom-cgroup", "storage.mount-daemon-killed")
    seen = job(own_entries=[frozenset({"python.remote-io"})], last_progress=None)
    assert judged(event(text, entries=entries), seen).support is Support.LOG
    assert judged(event(text.replace("gcsfuse", "mysqld"), entries=entries[:1]), seen).reason is Reason.OTHER_PROCESS


def test_a_process_that_the_kernel_ended_by_a_signal_is_known_by_its_id() -> None:
    seen = job("DataLoader worker (pid 4410) is killed", own_entries=[frozenset({"python.key-error"})])
    text = "Memory failure: 0x3f2c1d: Sending SIGBUS to python3.11:{pid} due to hardware memory corruption"
    assert judged(event(text.format(pid=4410), entries=("kernel.edac-ue",)), seen).support is Support.LOG
    assert judged(event(text.format(pid=5520), entries=("kernel.edac-ue",)), seen).reason is Reason.NOT_SHOWN


def test_an_event_that_nothing_else_supports_is_uncorroborated() -> None:
    seen = job(own_entries=[], other_entries=frozenset(), failed=None)
    assert judged(event(), seen).support is Support.ALONE


def test_a_second_source_supports_an_event() -> None:
    seen = job(own_entries=[], other_entries=frozenset(), failed=None)
    events = [event(), event(source="dcgm", index=1)]
    assert [one.support for one in judge(events, events, seen)] == [Support.SECOND_SOURCE] * 2


def test_the_scheduler_confirms_a_lost_node() -> None:
    seen = job(own_entries=[], other_entries=frozenset(), failed=None, status="node_fail")
    lost = event(
        "error: Nodes gpu1 not responding, setting DOWN", source="slurmctld", entries=("slurm.node-not-responding",)
    )
    assert judged(lost, seen).support is Support.SCHEDULER


def test_waiting_processes_support_what_happened_when_the_run_stopped() -> None:
    seen = job(own_entries=[], other_entries=PEER_GONE, failed=None, last_progress=END - 1_200)
    assert judged(event(at=END - 1_190), seen).support is Support.TIME
    assert judged(event(at=END - 300), seen).reason is Reason.LATER


def test_a_log_that_fits_one_event_sets_the_others_aside() -> None:
    port = event("mlx5_core 0000:81:00.0 mlx5_2: Port: 1 Link DOWN", index=1, entries=("network.ib-link-down",))
    seen = job(own_entries=[], other_entries=CUDA_ERROR | PEER_GONE)
    found = judge([event(), port], [event(), port], seen)
    assert [one.reason for one in found] == [None, Reason.NO_TRACE]


def test_the_same_events_are_used_where_only_the_first_reasons_are_explained() -> None:
    early = [event(at=END - 5_000 - index, index=index) for index in range(3)]
    back = event("GPU 0000:3b:00 was replaced", at=END - 300, index=4, entries=())
    events = [*early, event(at=END - 400, index=3), event(index=5)]
    every = judge(events, [*events, back], job())
    few = judge(events, [*events, back], job(), explained=1)
    assert [one.reason is None for one in few] == [one.reason is None for one in every]
    assert (few[0].reason, few[0].support) == (every[0].reason, every[0].support)


def test_corrected_errors_of_a_device_do_not_excuse_its_loss() -> None:
    aer = event("pcieport 0000:3a:01.0: AER: Corrected error from 0000:3b:00.0", at=END - 60, index=1, entries=())
    assert judged(event(), job(), [aer]).support is Support.LOG


def test_an_error_that_only_a_program_causes_is_explained_by_no_event() -> None:
    seen = job(own_entries=[frozenset({"cuda.lazy-fork"})], other_entries=frozenset())
    assert judged(event(), seen).reason is Reason.NOT_SHOWN


def test_what_failed_while_a_server_was_away_has_failed_although_it_came_back() -> None:
    seen = job(own_entries=[frozenset({"python.remote-io"})], other_entries=frozenset())
    gone = event(
        "LustreError: scratch-OST0007: This client was evicted by scratch-OST0007", entries=("storage.lustre",)
    )
    back = event("Lustre: scratch-OST0007: Connection restored to scratch-OST0007", at=END - 15, index=1, entries=())
    assert judged(gone, seen, [back]).support is Support.LOG
    assert judged(gone, job(own_entries=[frozenset({"python.remote-io"})], failed=END + 400), [back]).reason is not None


def test_the_eviction_of_another_pod_is_no_fault_of_this_job() -> None:
    seen = job("started pod train-0", own_entries=[], other_entries=PEER_GONE, failed=None)
    text = "Evicted pod {}: The node was low on resource: memory."
    other = event(text.format("web/cache-7"), entries=("kubernetes.evicted-memory",))
    own = event(text.format("ml/train-0"), entries=("kubernetes.evicted-memory",))
    assert (judged(other, seen).reason, judged(own, seen).reason) == (Reason.OTHER_PROCESS, None)


def test_a_stall_begins_when_the_collective_began_that_did_not_end() -> None:
    waited = frozenset({"pytorch.nccl-watchdog-timeout"})
    seen = job(own_entries=[], other_entries=waited, last_progress=END - 3_000, failed=END - 20, stalled=END - 1_820)
    lost = event(at=END - 1_850)
    assert judged(lost, seen).support is Support.TIME
    assert judged(lost, job(own_entries=[], other_entries=waited, last_progress=END - 3_000)).reason is Reason.LATER


def test_a_port_that_went_down_explains_that_a_peer_did_not_answer() -> None:
    down = event("mlx5_core 0000:81:00.0 mlx5_2: Port: 1 Link DOWN", entries=("network.ib-link-down",))
    seen = job(own_entries=[frozenset({"fabrics.undeliverable", "python.io-error"})], other_entries=frozenset())
    assert judged(down, seen).support is Support.LOG


def test_a_device_that_is_not_offered_to_jobs_is_no_device_of_the_job() -> None:
    uuid = "GPU-f2194681-b7eb-4369-acfc-6637a21601e1"
    lost = event(f"XidCriticalError: Xid=79 on Device={uuid}; marking device as unhealthy.")
    less = event(f"allocatable lowered from 8 to 7, {uuid} is not offered to pods", at=END - 18, index=1, entries=())
    assert (judged(lost, job()).reason, judged(lost, job(), [less]).reason) == (None, Reason.OTHER_DEVICE)


def test_an_event_after_the_end_needs_more_than_its_time() -> None:
    seen = job(own_entries=[], other_entries=frozenset(), failed=None)
    assert judged(event(at=END + 20), seen).reason is Reason.LATER


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        (
            "[Hardware Error]: CPU:22 MC21_STATUS[Over|CE|MiscV|-|SyndV|CECC|-]: 0xdc2040000000011b",
            "is_corrected",
            True,
        ),
        ("mce: [Hardware Error]: CPU 48: Machine Check: 0 Bank 12: 9c2040000000011b", "is_corrected", True),
        ("mce: [Hardware Error]: CPU 48: Machine Check: 0 Bank 12: bc2040000000011b", "is_corrected", False),
        ("Warning FailedMount pod/web-7c9d MountVolume.SetUp failed", "pods", frozenset({"web-7c9d"})),
        ("condition ReadonlyFilesystem=False reason=FilesystemIsNotReadOnly", "is_corrected", True),
        ("Power Unit Redundancy: Non-redundant:Insufficient Resources; System power down", "is_corrected", False),
        ("EDAC MC0: 1 CE memory read error (corrected)", "is_corrected", True),
        ("EDAC MC0: 1 UE memory read error, uncorrected", "is_corrected", False),
        ("nfs: server nas1 OK", "is_recovery", True),
        ("/dev/sdb is mounted at /backup", "is_disclaimed", True),
        ("Failed to create pod sandbox for web/api-1: no network", "pods", frozenset({"web/api-1"})),
        ("slurmd[812]: launch task StepId=77.0", "jobs", frozenset({"77"})),
        ("[ 6455.224518] Killed process 12 (python)", "jobs", frozenset()),
    ],
)
def test_the_text_of_an_event_names_its_objects(text: str, field: str, value: object) -> None:
    assert getattr(read_objects(text), field) == value


def test_every_rule_names_entries_of_the_catalogue_and_a_source() -> None:
    rules = {rule.id: rule for rule in event_rules.load().values()}
    assert len(rules) >= 15
    assert all(rule.source and (rule.explains or rule.explains_named or rule.leads_to) for rule in rules.values())
    assert event_rules.load()["nvidia.xid-79"].object == "gpu"


def test_what_one_pass_answers_is_what_each_pattern_answers() -> None:
    texts = {line for one in signatures.packaged().entries for line in (*one.examples, *one.near_misses)}
    texts |= {"link is up", "Card 0 REPLACED and reseated", "x no longer in use", "an ÜNUSED port recovered", "ok\n"}
    exact = [one for one in vars(event_objects).values() if getattr(one, "pattern", None) in event_objects.EXACT]
    assert len(exact) >= 2
    different = [
        (one.pattern[:40], text)
        for text in sorted(texts)
        for one in exact
        if read_objects(text).has(one) != (one.search(text[:600]) is not None)
    ]
    assert different == []
