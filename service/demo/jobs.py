"""Jobs of the demo: what they ask for, how far they are, and the event that reports the end of an attempt."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from service.demo import scenarios
from service.demo.scenarios import Place, Scenario

CLUSTER = "orion"
CHECKPOINT_S = 1_800.0
NODES_PER_RACK = 8
STEP_S = 0.9  # seconds of a training step
TIME_LIMIT_FACTOR = 1.5


@dataclass(slots=True)
class Job:
    """A job and its present attempt. `needed_s` is its whole run time, `saved_s` what its checkpoint holds.

    `bug`: a failure of its own code that recurs at each attempt; `opted_in`: it may be resubmitted automatically.
    """

    number: int
    name: str
    user: str
    team: str
    queue: str
    gpus: int
    needed_s: float
    submitted_at: datetime
    opted_in: bool = False
    bug: Scenario | None = None
    saved_s: float = 0.0
    attempt: int = 0
    resubmit_of: str | None = None
    exclude: frozenset[str] = frozenset()
    nodes: tuple[str, ...] = ()
    started_at: datetime | None = None
    failures: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def job_id(self) -> str:
        """The job id of the scheduler."""
        return str(self.number)

    @property
    def saves(self) -> bool:
        """Whether the job writes checkpoints."""
        return self.gpus >= 8 and self.needed_s > 2 * CHECKPOINT_S  # noqa: PLR2004 - a whole node


@dataclass(frozen=True, slots=True)
class End:
    """The end of an attempt. `scenario` None: it succeeded. `bad_node` is the node where a failure began."""

    at: datetime
    scenario: Scenario | None = None
    bad_node: str | None = None


def saved_after(job: Job, ran_s: float) -> float:
    """Seconds of work in the checkpoint after an attempt that ran so long."""
    if not job.saves:
        return 0.0
    return job.saved_s + ran_s // CHECKPOINT_S * CHECKPOINT_S


def rack(node: str) -> str:
    """The rack of a node: r01 holds gpu001 to gpu008."""
    return f"r{(int(node.removeprefix('gpu')) - 1) // NODES_PER_RACK + 1:02d}"


def event(job: Job, end: End) -> dict[str, Any]:
    """The job completion of an attempt, as Slurm's plug-in and the log collector would send it."""
    assert job.started_at is not None
    made: dict[str, Any] = {
        "schema": "job-completion/1",
        "cluster": CLUSTER,
        "job_id": job.job_id,
        "attempt": job.attempt,
        "restart_count": job.attempt,
        "name": job.name,
        "user": job.user,
        "team": job.team,
        "queue": job.queue,
        "gpu_type": "NVIDIA H100",
        "framework": "pytorch",
        "image": f"{job.team}/train:26.10",
        "scheduler": "slurm",
        "gpus": job.gpus,
        "nodes": list(job.nodes),
        "topology": {node: {"rack": rack(node)} for node in job.nodes},
        "submitted_at": job.submitted_at.isoformat(),
        "started_at": job.started_at.isoformat(),
        "ended_at": end.at.isoformat(),
        "time_limit_s": int(job.needed_s * TIME_LIMIT_FACTOR),
        "status": "succeeded",
    }
    if job.resubmit_of is not None:
        made["resubmit_of"] = job.resubmit_of
    if job.opted_in:
        made["labels"] = {"faultline/resubmit": "auto"}
    if end.scenario is None:
        return made | {"exit_code": 0}
    return made | _failure(job, end, end.scenario)


def _failure(job: Job, end: End, scenario: Scenario) -> dict[str, Any]:
    assert job.started_at is not None
    ran_s = (end.at - job.started_at).total_seconds()
    useful_s = max(ran_s - scenario.hang_s, 0.0)
    bad = end.bad_node or job.nodes[(job.number + job.attempt) % len(job.nodes)]
    nodes = (bad, *(node for node in job.nodes if node != bad))
    per_node = max(job.gpus // len(nodes), 1)
    place = Place(
        job_id=job.job_id,
        user=job.user,
        name=job.name,
        nodes=nodes,
        gpus=job.gpus,
        rank=job.nodes.index(bad) * per_node + job.number % per_node,
        step=int((job.saved_s + useful_s) / STEP_S) + 1,
    )
    made: dict[str, Any] = {"status": scenario.status, "logs": scenarios.logs(scenario, place, end.at)}
    if scenario.status == "failed":
        made["exit_code"] = scenario.exit_code
    if scenario.status == "timeout":
        made["time_limit_s"] = int(ran_s)
    kernel = scenarios.node_events(scenario, place, end.at)
    if kernel:
        made["node_events"] = kernel
    saved = saved_after(job, useful_s)
    if saved > 0:
        behind = timedelta(seconds=job.saved_s + useful_s - saved + scenario.hang_s)
        step = int(saved / STEP_S)
        made["checkpoint"] = {
            "uri": f"/scratch/{job.user}/{job.name}/step{step}.pt",
            "step": step,
            "at": max(end.at - behind, job.started_at).isoformat(),
        }
    return made
