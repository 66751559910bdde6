"""Adds the launcher's final report to a run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from classifiers.composition.long_runs import launcher_reports
from classifiers.composition.long_runs.timeline import Run


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Time of the end, exit codes by rank, and (time, rank) of each end, earliest first."""

    at: float
    codes: Mapping[int, int]
    seen: list[tuple[float, int]]

    @property
    def first(self) -> int:
        """Return the rank that ended first."""
        return self.seen[0][1]


def close(run: Run, end: RunEnd) -> None:
    """Add the launcher's final report to a run."""
    reporter = _REPORTERS.get(run.launcher)
    if reporter is not None:
        reporter(run, end)


def _torchrun(run: Run, end: RunEnd) -> None:
    rng = run.rng
    py, script = run.synthetic.get("py"), run.synthetic.get("script")
    agent = run.pids[0] - rng.randint(9, 90)
    for host in dict.fromkeys(run.hosts):
        on_host = [(at, rank) for at, rank in end.seen if run.hosts[rank] == host]
        if not on_host or (run.kind.how == "lost" and host == run.hosts[run.root]):
            continue
        begin = max(on_host[0][0] + rng.uniform(0.5, 5), end.at - 2)
        ended = {rank for _, rank in on_host}
        for rank in range(run.size):
            if run.hosts[rank] == host and rank not in ended:
                stamp = f"{run.stamp(begin, rank):%m%d %H:%M:%S}.000000"
                where = "torch/distributed/elastic/multiprocessing/api.py:897"
                text = f"W{stamp} {agent} {where}] Sending process {run.pids[rank]} closing signal SIGTERM"
                run.add_lines(begin, None, text, host=host)
        failures = [
            (run.stamp(at, rank), rank, run.local[rank], run.pids[rank], end.codes[rank])
            for at, rank in on_host[: rng.randint(1, 8)]
        ]
        report = launcher_reports.torchrun(run.stamp(begin, on_host[0][1]), script, host, failures, agent, py)
        run.add_lines(begin + 0.2, None, "\n".join(report), host=host)


def _srun(run: Run, end: RunEnd) -> None:
    if run.kind.how == "lost":
        words = f"srun: error: Node failure on {run.hosts[run.root]}\nsrun: Job step aborted: Waiting up to 32 seconds."
        run.add_lines(end.at - 0.5, None, words)
        return
    deaths = [(rank, run.hosts[rank], end.codes[rank]) for _, rank in end.seen]
    deaths += [(rank, run.hosts[rank], -15) for rank in range(run.size) if end.codes[rank] == -15][:3]
    head = launcher_reports.srun(run.synthetic.get("job"), deaths, run.stamp(end.at, None))
    run.add_lines(end.seen[0][0] + 0.2, None, head[0])
    run.add_lines(end.at, None, "\n".join(head[1:]))


def _mpirun(run: Run, end: RunEnd) -> None:
    first = end.first
    text = "\n".join(launcher_reports.mpirun(first, run.pids[first], run.hosts[first], end.codes[first], run.rng))
    run.add_lines(end.at, None, text.replace("mpirun", "prterun") if run.launcher == "prterun-tag" else text)


def _mpich(run: Run, end: RunEnd) -> None:
    first = end.first
    run.add_lines(end.at, None, "\n".join(launcher_reports.mpich(run.pids[first], run.hosts[first], end.codes[first])))


def _horovodrun(run: Run, end: RunEnd) -> None:
    others = [rank for _, rank in end.seen[1:4]]
    run.add_lines(end.at, None, "\n".join(launcher_reports.horovodrun(end.first, others, end.codes[end.first])))


def _deepspeed(run: Run, end: RunEnd) -> None:
    first = end.first
    pids = [run.pids[rank] for rank in range(run.size) if run.hosts[rank] == run.hosts[first]]
    py, script = run.synthetic.get("py"), run.synthetic.get("script")
    words = launcher_reports.deepspeed(run.stamp(end.at, None), pids, py, script, run.local[first], end.codes[first])
    run.add_lines(end.at, None, "\n".join(words))


def _ray(run: Run, end: RunEnd) -> None:
    first = end.first
    hexa = f"{run.rng.getrandbits(64):016x}"
    if end.codes[first] < 0:
        words = (
            "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
            f"\tclass_name: RayTrainWorker\n\tactor_id: {hexa}\n\tpid: {run.pids[first]}\n\tip: {run.ips[first]}\n"
            "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR "
            f"Worker exit detail: Worker {hexa} exits with a connection error code 2. End of file."
        )
    else:
        words = (
            "ray.exceptions.RayTaskError(RuntimeError): ray::_RayTrainWorker__execute.get_next() "
            f"(pid={run.pids[first]}, ip={run.ips[first]}, actor_id={hexa})"
        )
    run.add_lines(end.at, None, words)


_REPORTERS: Mapping[str, Callable[[Run, RunEnd], None]] = {
    **dict.fromkeys(("torchrun", "torchrun-tee", "torchrun-files"), _torchrun),
    **dict.fromkeys(("srun", "srun-l", "srun-files"), _srun),
    **dict.fromkeys(("mpirun", "mpirun-tag", "prterun-tag"), _mpirun),
    "mpiexec-l": _mpich,
    **dict.fromkeys(("horovodrun", "horovodrun-ts"), _horovodrun),
    "deepspeed": _deepspeed,
    "ray": _ray,
}
