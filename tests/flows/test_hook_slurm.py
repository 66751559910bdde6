"""From a job's failure to its resubmission with real components: broker, PostgreSQL, Slurm, worker, service, hook."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.flows.crashes import model_dir
from tests.flows.hook_crashes import Process
from tests.labs import slurm
from tests.labs.need import missing, need
from tests.labs.ports import free_port
from tests.labs.slurm import Slurm
from tests.service.hooks.slurm import benches
from tests.service.hooks.slurm.benches import Bench

if TYPE_CHECKING:
    from tests.labs.kafka import Broker
    from tests.labs.postgres import Postgres

pytestmark = pytest.mark.xdist_group("slurm")  # a machine runs one cluster at a time

CLUSTER = "lab"
# Users that exist on every Debian system with the same ids.
OWNERS = ("games", "man", "mail")
OUTAGE_JOBS = 30
PATIENCE_S = 600  # of waits that end as soon as it has happened
FRAGILE = slurm.NODES[-1]  # reserved for the job that loses it
AUTO = "--comment=nightly faultline/resubmit=auto"

XID_ON_GPU1 = """\
echo "step 100 loss 2.31 on $SLURMD_NODENAME"
if [ "$SLURMD_NODENAME" = gpu1 ]; then
  echo "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python3, GPU has fallen off the bus."
  echo "RuntimeError: CUDA error: unspecified launch failure"
  exit 1
fi
echo "step 200 loss 1.97: done"
"""
# Each waits until the file system fails, and succeeds once it is back.
ON_NAS = """\
while [ ! -e {share}/started ]; do sleep 0.2; done
echo "step 40 loss 2.1"
if [ -e {share}/outage ]; then
  echo "nfs: server nas01 not responding, timed out"
  echo "file system gone: /mnt/nas01"
  exit 1
fi
echo "step 80 loss 1.8: done"
"""
# Default settings except for shorter intervals, so that the flow takes minutes.
POLICY = """\
version = "flow-1"
[opt_in]
default = "scheduler"
[backoff]
base_s = 8
max_s = 60
[incident]
probe_minutes = 0.2
pace_per_minute = 90
"""


@dataclass
class Faultline:
    """Worker and service on one database, and the hook with Slurm."""

    port: int
    processes: dict[str, Process]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1{path}", timeout=120) as answer:
            return json.load(answer)

    def page(self, path: str, output: Callable[[], str]) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=120) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error}\n{output()}") from None

    def up(self) -> bool:
        try:
            return bool(self.get("/automation"))
        except OSError:
            return False

    def attempts(self, job: str) -> list[dict[str, Any]]:
        try:
            return list(self.get(f"/jobs/{CLUSTER}/{job}")["attempts"])
        except urllib.error.HTTPError:
            return []

    def requests(self, *jobs: str) -> list[dict[str, Any]]:
        """Those of these jobs, or all."""
        items = self.get(f"/resubmissions?cluster={CLUSTER}&limit=500")["items"]
        return [one for one in items if not jobs or one["job_id"] in jobs]

    def output_text(self) -> str:
        return "\n".join(f"--- {name}\n{process.output_text()}" for name, process in self.processes.items())


@pytest.fixture
def cluster(kafka_broker: "Broker") -> Iterator[Slurm]:
    need("setpriv")
    if not (model_dir() / "manifest.json").exists():
        missing("there is no trained model (make install)")
    topic = kafka_broker.create_topic(f"hook-{uuid.uuid4().hex[:8]}")
    with slurm.cluster(kafka_broker.address, topic) as made:
        yield made


@pytest.fixture
def bench(cluster: Slurm, tmp_path: Path) -> Bench:
    made = benches.bench_of(cluster, tmp_path / "bin")
    # Thirty jobs at a time on sixteen cores, as on a larger cluster.
    made.run("scontrol", "update", "PartitionName=gpu", "OverSubscribe=FORCE:12")
    return made


@pytest.fixture
def faultline(
    kafka_broker: "Broker", postgres_server: "Postgres", cluster: Slurm, bench: Bench, tmp_path: Path
) -> Iterator[Faultline]:
    port = free_port()
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}
    environment = kept | {
        "FAULTLINE_DATABASE_URL": postgres_server.create(f"hook_{uuid.uuid4().hex[:8]}"),
        "FAULTLINE_KAFKA_BOOTSTRAP_SERVERS": kafka_broker.address,
        "FAULTLINE_KAFKA_TOPICS": f"{cluster.topic}={CLUSTER}",
        "FAULTLINE_KAFKA_GROUP_ID": cluster.topic,
        "FAULTLINE_DEAD_LETTER_TOPIC": f"dead-{cluster.topic}",
        "FAULTLINE_MODEL_DIR": str(model_dir()),
        "FAULTLINE_LOG_ROOTS": str(cluster.share),
        "FAULTLINE_POLICY_FILE": str(policy),
        "FAULTLINE_PORT": str(port),
    }
    subprocess.run([sys.executable, "-m", "service", "db", "upgrade"], env=environment, check=True, timeout=60)
    hook = ["hook", "slurm", "--url", f"http://127.0.0.1:{port}", "--cluster", CLUSTER, "--poll-s", "1"]
    hook += ["--slurm-bin", str(bench.folder), "--state-dir", str(tmp_path / "hook")]
    made = Faultline(
        port,
        {
            "worker": Process(["worker", "--name", "hook-flow"], environment, tmp_path / "worker.log"),
            "service": Process(["serve"], environment, tmp_path / "service.log"),
            "hook": Process([*hook, "--write-back", f"http://127.0.0.1:{port}"], kept, tmp_path / "hook.log"),
        },
    )
    try:
        for process in made.processes.values():
            process.start()
        wait(made.up, made.output_text)
        yield made
    finally:
        for process in made.processes.values():
            process.kill()


def wait(until: Callable[[], bool], output: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not until():
        assert time.monotonic() < deadline, output()
        time.sleep(0.3)


@pytest.mark.lab
def test_what_can_be_helped_runs_again_and_nothing_else_does(
    cluster: Slurm, bench: Bench, faultline: Faultline
) -> None:
    def state_shown() -> str:
        requests = "\n".join(f"{one['job_id']} {one['state']} {one['held_by']} {one['detail']}" for one in shown())
        return f"{requests}\n{faultline.output_text()}\n{cluster.output_text()}"

    def shown() -> Sequence[dict[str, Any]]:
        return faultline.requests()

    (cluster.share / "outage").touch()
    lost = bench.submit("echo 'step 1'; sleep 600", AUTO, f"--nodelist={FRAGILE}", "--mem=50")
    bench.wait(lost, ["RUNNING"])
    cluster.lose_node(FRAGILE)  # Slurm detects it after half a minute, and requeues the job automatically

    xid = bench.submit(XID_ON_GPU1, AUTO, f"--exclude={FRAGILE}", "--mem=50")
    assert bench.wait(xid, ["FAILED", "COMPLETED"])["nodes"] == "gpu1"
    typo = bench.submit("python3 -c 'import einops_of_another_version'", AUTO, f"--exclude={FRAGILE}", "--mem=50")
    on_nas = ON_NAS.format(share=cluster.share)
    many = [
        bench.submit(on_nas, AUTO, f"--exclude={FRAGILE}", "--mem=50", f"--uid={OWNERS[number % len(OWNERS)]}")
        for number in range(OUTAGE_JOBS)
    ]
    for job in many:
        bench.wait(job, ["RUNNING"])

    # One job fails because of its node: it is resubmitted without it, succeeds, and its page shows the whole chain.
    wait(lambda: any(one["outcome"] for one in faultline.requests(xid)), state_shown)
    [request] = faultline.requests(xid)
    assert (request["state"], request["result"], request["outcome"]) == ("done", "done", "succeeded"), state_shown()
    ended = bench.job(xid)
    assert ended["job_state"] == ["COMPLETED"]
    assert ended["nodes"] != "gpu1"
    assert ended["restart_cnt"] == 1
    assert ended["comment"] == f"nightly faultline/resubmit=auto faultline/request={request['request_id']}"
    assert f"/failures/{request['failure_id']}" in ended["admin_comment"]
    assert [one["status"] for one in faultline.attempts(xid)] == ["failed", "succeeded"]

    # Thirty jobs fail because of one outage: one incident, all requests on hold.
    (cluster.share / "started").touch()
    wait(lambda: len(faultline.requests(*many)) == OUTAGE_JOBS, state_shown)
    (cluster.share / "outage").unlink()  # somebody repairs it
    [incident] = faultline.get("/incidents")["items"]
    assert (incident["jobs"], incident["users"], incident["value"]) == (OUTAGE_JOBS, len(OWNERS), "nas01")

    # One request is released first; after it succeeds, the others follow, a few at a time.
    wait(lambda: all(one["outcome"] for one in faultline.requests(*many)), state_shown)
    found = faultline.requests(*many)
    assert [(one["result"], one["outcome"]) for one in found] == [("done", "succeeded")] * OUTAGE_JOBS
    probe, *others = sorted((datetime.fromisoformat(one["ended_at"]), one) for one in found)
    closed = faultline.get("/incidents")["items"][0]
    assert closed["state"] == "closed"
    assert probe[1]["request_id"] == closed["probe"]
    assert all(at > datetime.fromisoformat(probe[1]["outcome_at"]) for at, _ in others)
    assert (others[-1][0] - others[0][0]).total_seconds() > OUTAGE_JOBS / 90 * 60 * 0.5

    # A typo is no outage; and a job that Slurm has requeued is not requeued again.
    assert bench.job(typo)["job_state"] == ["FAILED"]
    assert faultline.requests(typo) == []
    wait(lambda: bench.job(lost)["job_state"] == ["PENDING"], state_shown)
    wait(lambda: any(one["status"] == "node_fail" for one in faultline.attempts(lost)), state_shown)
    time.sleep(3)  # nothing to wait for: a request may come or not, and must not change the job
    wait(lambda: all(one["result"] for one in faultline.requests(lost)), state_shown)
    again = bench.job(lost)
    assert again["comment"] == "nightly faultline/resubmit=auto"
    assert {one["result"] for one in faultline.requests(lost)} <= {"already_done"}
    page = faultline.page(f"/failures/{request['failure_id']}", state_shown)
    for words in ("GPU has fallen off the bus", "resubmit without gpu1", "; the new run succeeded.", "one bad node:"):
        assert words in page, words
