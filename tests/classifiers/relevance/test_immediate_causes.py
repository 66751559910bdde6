"""Events that explain what a program alone could cause too: at once, where steps got slower, or for all of its jobs."""

from datetime import UTC, datetime, timedelta

import pytest

from classifiers.contracts import Case, JobFacts, LogStream, NodeEvent, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

END = datetime(2026, 11, 20, 12, tzinfo=UTC)


def of_job(log: str, event: str, *, before_s: float = 20, node: str = "n1", status: str = "failed") -> Case:
    job = JobFacts(status, started_at=END - timedelta(minutes=20), ended_at=END, nodes=("n1", "n2"), gpus=2)
    happened = NodeEvent(event, END - timedelta(seconds=before_s), node, "kernel")
    streams = (LogStream(log, rank=0, node="n1"), LogStream("", rank=1, node="n2"))
    return EXTRACTOR.extract(RawCase(job, streams, (happened,))).case


BROKEN_DISK = "critical medium error, dev nvme3n1, sector 4711 op 0x0:(READ)"
BAD_TABLE = "2026-11-20 11:59:50 pyarrow.lib.ArrowInvalid: Parquet magic bytes not found in footer\n"
LOST_SLOT = "pcieport 0000:17:01.0: pciehp: Slot(3): Link Down"
LAUNCH = "RuntimeError: CUDA error: unspecified launch failure\n"
NO_NAMES = "kube-dns: 0/3 replicas available"
NAME = "socket.gaierror: [Errno -3] Temporary failure in name resolution\n"
TOKENS = "agent: renewal of workload tokens fails on all nodes"
EXPIRED = "botocore.exceptions.ClientError: An error occurred (ExpiredToken) when calling the GetObject operation\n"
LEFT = "epilog: clean-up of /var/tmp/inductor timed out"
DENIED = "PermissionError: [Errno 13] Permission denied: '/var/tmp/inductor/ab'\n"
PROXY = "agent: cache daemon 10.9.8.7:3128 is crash-looping"
REFUSED = "ConnectionRefusedError: [Errno 111] Connect call failed ('10.9.8.7:3128')\n"
MIG = "nvidia-smi: MIG mode enabled for GPU 00000000:17:00.0 by root"
ORDINAL = "RuntimeError: CUDA error: invalid device ordinal\n"
SWEEP = "clean.sh: killall -9 python3 on n1"
KILLED = "step 1\nKilled\n"
SKEW = "chronyd[9]: System clock wrong by 812.2 seconds"
SKEWED = "An error occurred (RequestTimeTooSkewed) when calling the PutObject operation\n"

EMPTIED = "prolog of job 4411: emptied /dev/shm (31 objects)"
GONE = (
    "RuntimeError: unable to open shared memory object </torch_7_12_9> in read-write mode: No such file or directory\n"
)
IMAGE = "ci: image /apps/nemo.sif overwritten by pipeline 88"
BUS = "step 1\nFatal Python error: Bus error\n"
NO_THREADS = "RuntimeError: can't start new thread\n"
FORKS = "cgroup: fork rejected by pids controller in /system.slice/collectd.service"


@pytest.mark.parametrize(
    ("log", "event", "before_s", "leads"),
    [
        (GONE, EMPTIED, 60, True),
        (GONE, EMPTIED, 3_600, False),  # the objects were made later
        ("KeyError: 'label'\n", EMPTIED, 60, False),
        (BUS, IMAGE, 40, True),
        (BUS, IMAGE, 3_000, False),
        ("KeyError: 'label'\n", IMAGE, 40, False),
        (BUS, "SQUASHFS error: Unable to read metadata cache entry [1a2f3c]", 5, True),
        (NO_THREADS, FORKS, 30, True),
        (BAD_TABLE, BROKEN_DISK, 20, True),
        (BAD_TABLE, BROKEN_DISK, 1_200, False),  # the disk failed, but the file was read much later
        ("KeyError: 'label'\n", BROKEN_DISK, 20, False),
        (LAUNCH, LOST_SLOT, 20, True),
        (NAME, NO_NAMES, 1_500, True),  # since before the job began
        (EXPIRED, TOKENS, 7_000, True),
        ("KeyError: 'label'\n", TOKENS, 7_000, False),
        (DENIED, LEFT, 3_700, True),
        (DENIED.replace("/var/tmp/inductor", "/projects/x"), LEFT, 3_700, False),  # another path
        (SKEWED, SKEW, 600, True),
        (REFUSED, PROXY, 60, True),
        (REFUSED.replace("10.9.8.7", "10.9.8.70"), PROXY, 60, False),  # another address
        (ORDINAL, MIG, 7_200, True),
        (KILLED, SWEEP, 5, True),
        ("KeyError: 'label'\n", SWEEP, 5, False),
    ],
)
def test_an_event_leads_what_it_causes(log: str, event: str, before_s: float, *, leads: bool) -> None:
    assert (of_job(log, event, before_s=before_s).evidence[0].text == event) is leads


def steps(seconds: float) -> str:
    """Lines that print the duration of their step: first 0.4 s, then so many."""
    times = [END - timedelta(seconds=900 - 20 * number) for number in range(40)]
    last = [0.4 if number < 20 else seconds for number in range(40)]
    return "".join(
        f"{at:%Y-%m-%d %H:%M:%S} it {n} step_time={took}\n"
        for n, (at, took) in enumerate(zip(times, last, strict=True))
    )


HOT = "GPU 2: clock fell 1755 -> 270 MHz (HW thermal slowdown)"


@pytest.mark.parametrize(("seconds", "leads"), [(4, True), (0, False)])
def test_steps_that_got_slower_speak_for_a_device_that_did(seconds: float, *, leads: bool) -> None:
    log = steps(seconds or 0.4) + "RuntimeError: throughput is below the target, giving up\n"
    case = of_job(log, HOT, before_s=520, node="n1")
    assert (case.evidence[0].text == HOT) is leads


def test_a_change_that_brought_in_the_version_which_the_log_shows_leads() -> None:
    change = "modules: default of toolkit moved from 11.8 to 12.6"
    log = "loading toolkit 12.6\nImportError: /x/ops.so: undefined symbol: _ZN3c10\n"
    assert of_job(log, change, before_s=7_200).evidence[0].text == change
    assert of_job(log.replace("12.6", "11.8"), change, before_s=7_200).evidence[0].text != change


STALLED = "rcu: INFO: rcu_sched detected stalls on CPUs/tasks: { 12-... } (detected by 3, t=60002 jiffies)"


def of_two_nodes(last: datetime, event: datetime) -> Case:
    """A case in which the log of n2 ends at some time, and a rank of n1 reports an error of its own at the end."""
    job = JobFacts("failed", started_at=END - timedelta(hours=1), ended_at=END, nodes=("n1", "n2"), gpus=2)
    lines = [f"{last - timedelta(minutes=number):%Y-%m-%d %H:%M:%S} step {30 - number} loss 2" for number in range(9)]
    error = f"{END:%Y-%m-%d %H:%M:%S} TypeError: object of type 'NoneType' has no len()"
    logs = "\n".join(reversed(lines)) + "\n"
    streams = (LogStream(logs + error + "\n", rank=0, node="n1"), LogStream(logs, rank=1, node="n2"))
    return EXTRACTOR.extract(RawCase(job, streams, (NodeEvent(STALLED, event, "n2", "kernel"),))).case


@pytest.mark.parametrize(
    "asked", ["board update: n1 set to reboot by the installer", "systemd: The system will reboot now!"]
)
def test_a_restart_that_was_asked_for_comes_before_the_node_that_restarted(asked: str) -> None:
    job = JobFacts("node_fail", started_at=END - timedelta(hours=2), ended_at=END, nodes=("n1", "n2"), gpus=2)
    first = NodeEvent(asked, END - timedelta(seconds=320), "n1", "change" if "board" in asked else "systemd")
    again = NodeEvent("error: Node n1 unexpectedly rebooted", END - timedelta(seconds=20), "n1", "slurmctld")
    streams = (LogStream("step 1\n", rank=0, node="n1"), LogStream("step 1\n", rank=1, node="n2"))
    items = EXTRACTOR.extract(RawCase(job, streams, (again, first))).items
    assert items[0].text == first.text
    assert not any(item.text == again.text and item.role == "initiating" for item in items)
