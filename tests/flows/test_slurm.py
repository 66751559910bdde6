"""Jobs on a real Slurm cluster end in all possible ways; the events of its Kafka plugin become stored verdicts."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from service.db.session import Store
from service.failures.records import FailureDetail
from service.jobs.records import Attempt
from service.settings import default_model_dir
from tests.labs import slurm
from tests.labs.need import missing
from tests.labs.ports import free_port
from tests.labs.slurm import SMALL_DISK, Slurm

if TYPE_CHECKING:
    from tests.labs.kafka import Broker

pytestmark = pytest.mark.xdist_group("slurm")  # a machine runs one cluster at a time

CLUSTER = "lab"
# Slurm checks time limits every half minute, and the shortest is a minute; all else happens in parallel.
PATIENCE_S = 600  # of waits that end as soon as it has happened

TRAINING = {
    "import-error": "import einops_of_another_version\n",
    "missing-file": "with open('/data/imagenet/train-00001.tfrecord', 'rb') as shard:\n    shard.read()\n",
    # A checkpoint saved on a GPU, loaded on a machine without a GPU.
    "no-gpu": """\
import torch
torch.serialization.register_package(0, lambda storage: "cuda:0", lambda storage, location: None)
torch.save(torch.ones(4), "checkpoint.pt")
print("resuming from checkpoint.pt", flush=True)
torch.load("checkpoint.pt", weights_only=True)
""",
    "out-of-memory": """\
cache = []
for step in range(10_000):
    cache.append(bytearray(10 << 20))
    print(f"step {step}", flush=True)
""",
    "segfault": "import ctypes\nprint('loading kernels', flush=True)\nctypes.string_at(0)\n",
    "sleeper": "import time\nprint('step 1', flush=True)\ntime.sleep(600)\n",
    "full-disk": f"""\
with open("{SMALL_DISK}/model.bin", "wb", buffering=0) as checkpoint:
    for step in range(64):
        checkpoint.write(bytes(1 << 16))
        print(f"saved part {{step}}", flush=True)
""",
    "one-rank-raises": """\
import os
os.environ["RANK"], os.environ["WORLD_SIZE"] = os.environ["SLURM_PROCID"], os.environ["SLURM_NTASKS"]
import torch
import torch.distributed as dist
dist.init_process_group("gloo", init_method="env://")
for step in range(5):
    gradient = torch.ones(4)
    dist.all_reduce(gradient)
    print(f"rank {dist.get_rank()} step {step}", flush=True)
    if step == 2 and dist.get_rank() == 1:
        raise ValueError("label 1001 is out of range for 1000 classes")
""",
    "good": "for step in range(3):\n    print(f'step {step} loss {1 / (step + 1):.3f}', flush=True)\n",
}


@dataclass(frozen=True)
class Expected:
    """The expected event of a job: its status, and words that its log contains."""

    status: str
    log: str | None = None


@dataclass
class Worker:
    """A `faultline worker` process that can be killed and started again."""

    environment: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "service", "worker", "--name", "flow"],
                env=self.environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def kill_and_restart(self) -> None:
        assert self.end(signal.SIGKILL) == -signal.SIGKILL
        self.start()

    def end(self, how: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(60)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(30)


@pytest.fixture
def environment(kafka_broker: "Broker", tmp_path: Path) -> dict[str, str]:
    model = Path(os.environ.get("FAULTLINE_MODEL_DIR") or default_model_dir())
    if not (model / "manifest.json").exists():
        missing("there is no trained model (make install)")
    run = uuid.uuid4().hex[:8]
    topic = kafka_broker.create_topic(f"slurm-{run}")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}
    return kept | {
        "FAULTLINE_DATABASE_URL": f"sqlite:///{tmp_path}/faultline.sqlite3",
        "FAULTLINE_KAFKA_BOOTSTRAP_SERVERS": kafka_broker.address,
        "FAULTLINE_KAFKA_TOPICS": f"{topic}={CLUSTER}",
        "FAULTLINE_KAFKA_GROUP_ID": f"flow-{run}",
        "FAULTLINE_KAFKA_SESSION_TIMEOUT_MS": "6000",
        "FAULTLINE_DEAD_LETTER_TOPIC": f"dead-{run}",
        "FAULTLINE_MODEL_DIR": str(model),
    }


@pytest.fixture
def cluster(kafka_broker: "Broker", environment: dict[str, str]) -> Iterator[Slurm]:
    topic = environment["FAULTLINE_KAFKA_TOPICS"].partition("=")[0]
    with slurm.cluster(kafka_broker.address, topic) as made:
        environment["FAULTLINE_LOG_ROOTS"] = str(made.share)
        yield made


@pytest.fixture
def store(environment: dict[str, str]) -> Iterator[Store]:
    subprocess.run([sys.executable, "-m", "service", "db", "upgrade"], env=environment, check=True, timeout=60)
    opened = Store(environment["FAULTLINE_DATABASE_URL"])
    yield opened
    opened.close()


@pytest.fixture
def worker(environment: dict[str, str], tmp_path: Path) -> Iterator[Worker]:
    made = Worker(environment, tmp_path / "worker.log")
    yield made
    made.close()


def submit_all(cluster: Slurm) -> dict[int, Expected]:
    """The twelve jobs, longest first; the last node is reserved for the job that loses it."""
    for name, text in TRAINING.items():
        (cluster.share / f"{name}.py").write_text(text, encoding="utf-8")

    def job(name: str, expected: Expected, *options: str, program: str | None = None, srun: str = "") -> None:
        script = f"{srun} python3 {cluster.share}/{program or name}.py"
        where = () if "-w" in options else ("-x", slurm.NODES[-1])
        jobs[cluster.submit(name, script, *where, *options)] = expected

    jobs: dict[int, Expected] = {}
    job("time-limit", Expected("timeout", "DUE TO TIME LIMIT"), "--time=1", program="sleeper")
    lost = ("-N", "2", "-w", ",".join(slurm.NODES[-2:]), "--no-requeue")
    job("node-lost", Expected("node_fail", "step 1"), *lost, program="sleeper", srun="srun")
    job("cancelled", Expected("cancelled"), program="sleeper")
    ranks = f"export MASTER_ADDR=127.0.0.1 MASTER_PORT={free_port()} USE_LIBUV=0\nsrun"
    job("one-rank-raises", Expected("failed", "ValueError: label 1001 is out of range"), "-n", "2", srun=ranks)
    job("no-gpu", Expected("failed", "RuntimeError: Attempting to deserialize object on a CUDA device"))
    job("import-error", Expected("failed", "ModuleNotFoundError: No module named 'einops_of_another_version'"))
    job("missing-file", Expected("failed", "FileNotFoundError: [Errno 2]"))
    job("out-of-memory", Expected("out_of_memory", "oom_kill"), "--mem=200")
    job("segfault", Expected("failed", "loading kernels"))
    job("full-disk", Expected("failed", "OSError: [Errno 28] No space left on device"))
    job("good-one", Expected("succeeded"), program="good")
    job("good-two", Expected("succeeded"), program="good")
    return jobs


def stored(store: Store, jobs: dict[int, Expected]) -> dict[int, tuple[Attempt, ...]]:
    with store.reading() as reading:
        found = {job: reading.jobs.attempts(CLUSTER, str(job)) for job in jobs}
    return {job: attempts for job, attempts in found.items() if attempts}


def wait(until: Callable[[], bool], seconds: float, output: Callable[[], str]) -> None:
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, output()
        time.sleep(0.5)  # the wait takes minutes, and reads all jobs each time


@pytest.mark.lab
def test_every_way_a_job_ends_arrives_once_with_its_log_though_the_worker_is_killed(
    cluster: Slurm, store: Store, worker: Worker
) -> None:
    def output() -> str:
        return f"stored: {sorted(stored(store, jobs))}\n{worker.log.read_text()[-3000:]}\n{cluster.output_text()}"

    worker.start()
    jobs = submit_all(cluster)
    numbers = dict(zip(("time-limit", "node-lost", "cancelled"), jobs, strict=False))
    cluster.wait_for(numbers["cancelled"], ["RUNNING"], PATIENCE_S)
    cluster.run("scancel", str(numbers["cancelled"]), user=slurm.USER)
    cluster.wait_for(numbers["node-lost"], ["RUNNING"], PATIENCE_S)
    log = cluster.share / "logs" / f"node-lost-{numbers['node-lost']}.out"
    wait(lambda: log.exists() and "step 1" in log.read_text(), PATIENCE_S, output)
    cluster.lose_node(slurm.NODES[-1])

    wait(lambda: len(stored(store, jobs)) > 0, PATIENCE_S, output)
    worker.kill_and_restart()  # while the first completions are being stored
    assert len(stored(store, jobs)) < len(jobs)
    cluster.wait_for(numbers["node-lost"], ["NODE_FAIL"], PATIENCE_S)
    worker.kill_and_restart()  # while the record of the lost node's job arrives

    wait(lambda: len(stored(store, jobs)) == len(jobs), PATIENCE_S, output)
    # Slurm sends the record of a job at its limit before it stops the job, so that the log is read once more.
    stopped = {job: expected for job, expected in jobs.items() if expected.status == "timeout"}
    wait(lambda: not missing_words(store, stopped), PATIENCE_S, output)
    assert worker.end(signal.SIGTERM) == 0, output()

    arrived = stored(store, jobs)
    assert {job: [one.status for one in attempts] for job, attempts in arrived.items()} == {
        job: [expected.status] for job, expected in jobs.items()
    }
    for job, expected in jobs.items():
        [attempt] = arrived[job]
        assert (attempt.user, attempt.queue, attempt.conflicts) == (slurm.USER, "gpu", 0)
        if expected.log is None:
            continue
        detail = failure_of(store, attempt)
        assert expected.log in log_of(detail, job)
        assert len(detail.versions) == 1 or expected.status in {"timeout", "node_fail"}, "no end is stored twice"
    with store.reading() as reading:
        assert not reading.dead_letters.page().items


def failure_of(store: Store, attempt: Attempt) -> FailureDetail:
    assert attempt.failure_id is not None
    with store.reading() as reading:
        return reading.failures.get(attempt.failure_id)


def missing_words(store: Store, jobs: dict[int, Expected]) -> list[int]:
    """The jobs whose stored log does not contain the expected words."""
    arrived = stored(store, jobs)
    return [
        job
        for job, expected in jobs.items()
        if (expected.log or "") not in log_of(failure_of(store, arrived[job][0]), job)
    ]


def log_of(detail: FailureDetail, job: int) -> str:
    """Return the log text that was read from a job's own output file."""
    [kept] = detail.logs
    [stream] = kept.streams
    assert stream.missing is None
    assert kept.event["logs"][0]["uri"].endswith(f"-{job}.out")
    return stream.text
