"""Sends requests to hooks, through the real service on a real PostgreSQL, while hooks and service are killed.

The `command` hook runs a program that appends a line; the `slurm` hook uses the file-based fake, which passes the same
test suite as the lab. Each round requests a few resubmissions and kills at random moments; the work of a round may be
completed in a later one, and all of it must be complete at the end.
"""

import json
import os
import random
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import psycopg

from tests.flows.crashes import model_dir
from tests.labs.ports import free_port
from tests.labs.postgres import Postgres
from tests.labs.slurm import USER
from tests.service.hooks.slurm import benches
from tests.service.hooks.slurm.benches import Bench

Victim = Literal["command hook", "slurm hook", "service"]

VICTIMS: tuple[Victim, ...] = ("command hook", "slurm hook", "service")
LIKELY = (6, 6, 1)  # the service takes as long to restart as ten hooks
IN_ACTION = 0.3  # how often a kill waits for an action: those at random moments seldom interrupt one
COMMANDS, REQUEUES, SUBMISSIONS = 3, 1, 1  # requests in each round
LEASE_S, PROGRAM_S, TOOL_S = 4, 3, 10  # a hook asks for a lease as long as it may need for its program or commands
BACKLOG = 3 * (COMMANDS + REQUEUES + SUBMISSIONS)
PATIENCE_S = 300.0  # without any request ending
OPEN = ("held", "waiting", "leased")
PROGRAM = 'sleep "0.0$(($$ % 10))"; echo "$FAULTLINE_REQUEST_ID" >>"$0"'
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."


@dataclass
class Report:
    """The results. `states`: final request states, by hook; `half`: kills between start and end of an action."""

    rounds: int = 0
    asked: int = 0
    states: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    half: int = 0
    twice: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def text(self) -> str:
        """Return the results as text for people."""
        kills = ", ".join(f"{count} x {what}" for what, count in sorted(self.kills.items()))
        states = ", ".join(f"{count} {what}" for what, count in sorted(self.states.items()))
        return (
            f"{self.asked} requests in {self.rounds} rounds, {self.seconds:.0f} s; killed: {kills}; {self.half} kills"
            f" of a hook left an intent open; ended: {states};"
            f" done twice: {self.twice or 'none'}; lost: {self.lost or 'none'}"
        )


class Process:
    """A Faultline command that can be killed and started again."""

    def __init__(self, arguments: Sequence[str], environment: dict[str, str], log: Path) -> None:
        self._arguments = arguments
        self._environment = environment
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; returns immediately."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "service", *self._arguments],
                env=self._environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)

    def alive(self) -> bool:
        """Return whether it runs."""
        return self._process is not None and self._process.poll() is None

    def output_text(self) -> str:
        """Return the end of its log."""
        return self._log.read_text(errors="replace")[-3000:] if self._log.exists() else ""


class Rounds:
    """Runs hooks and service for a number of rounds."""

    def __init__(self, database: Postgres, folder: Path, *, rounds: int, seed: int) -> None:
        self._rounds = rounds
        self._seed = seed
        self._folder = folder
        self._url = database.create(f"hooks_{seed}_{rounds}")
        self._port = free_port()
        self._lines = folder / "lines"
        folder.mkdir(exist_ok=True)
        self._lines.touch()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}
        self._service_environment = kept | {
            "FAULTLINE_DATABASE_URL": self._url,
            "FAULTLINE_MODEL_DIR": str(model_dir()),
            "FAULTLINE_PORT": str(self._port),
        }
        self._hook_environment = kept

    def run(self) -> Report:
        """Run all rounds."""
        # One connection for all questions: they are many, and the server starts a process for each connection.
        with psycopg.connect(self._url, connect_timeout=5, autocommit=True) as self._connection:
            return self._run()

    def _run(self) -> Report:
        began = time.monotonic()
        report = Report(rounds=self._rounds)
        with ExitStack() as stack:
            bench = stack.enter_context(benches.fake(self._folder / "fake"))
            processes = self._processes(bench)
            for process in processes.values():
                stack.callback(process.kill)
            subprocess.run(
                [sys.executable, "-m", "service", "db", "upgrade"],
                env=self._service_environment,
                check=True,
                timeout=60,
                stdout=subprocess.DEVNULL,
            )
            processes["service"].start()
            self._until(self._up, processes)
            failures = self._failed_jobs(bench)
            processes["command hook"].start()
            processes["slurm hook"].start()
            for number in range(self._rounds):
                rng = random.Random(f"{self._seed}/{number}")
                self._until(self._up, processes)
                self._until(lambda: self._open() < BACKLOG, processes)  # let a busy machine catch up
                wanted = failures[number]
                for failure in wanted:
                    self._ask(f"/failures/{failure}:resubmit", {})
                report.asked += len(wanted)
                self._kill_some(rng, processes, report)
            self._until(lambda: self._up() and not self._open(), processes)
        self._look(bench, report)
        report.seconds = time.monotonic() - began
        return report

    def _processes(self, bench: Bench) -> dict[Victim, Process]:
        common = ["--url", f"http://127.0.0.1:{self._port}", "--poll-s", "0.1", "--lease-s", str(LEASE_S)]
        common += ["--state-dir", str(self._folder / "state")]
        slurm = ["--cluster", "lab", "--slurm-bin", str(bench.folder), "--settle-s", "0", "--no-save-scripts"]
        slurm += ["--slurm-timeout-s", str(TOOL_S)]
        program = ["--command-timeout-s", str(PROGRAM_S), "--", "/bin/sh", "-c", PROGRAM, str(self._lines)]
        return {
            "service": Process(["serve"], self._service_environment, self._folder / "service.log"),
            "slurm hook": Process(
                ["hook", "slurm", *common, *slurm], self._hook_environment, self._folder / "slurm-hook.log"
            ),
            "command hook": Process(
                ["hook", "command", *common, "--cluster", "command", *program],
                self._hook_environment,
                self._folder / "command-hook.log",
            ),
        }

    def _failed_jobs(self, bench: Bench) -> list[list[int]]:
        """Return the failures to resubmit in each round; those of Slurm have failed jobs in the fake."""
        script = f'echo "$SLURM_ARRAY_TASK_ID" >>{self._folder}/runs\n[ "$SLURMD_NODENAME" != gpu1 ]'
        ids = [f"command/{number}" for number in range(COMMANDS * self._rounds)]
        slurm: list[str] = []
        for count, options in (
            (REQUEUES, ()),
            (SUBMISSIONS, ("--no-requeue", "--comment=faultline/resubmit=auto")),
        ):
            tasks = ",".join(str(number) for number in range(count * self._rounds))
            base = bench.submit(script, f"--array={tasks}", *options)
            slurm += [f"{base}_{number}" for number in range(count * self._rounds)]
        keep_for_long(bench)
        at = datetime.now(UTC)
        for cluster, jobs in (("command", ids), ("lab", slurm)):
            for start in range(0, len(jobs), 200):
                events = [event(cluster, job, at) for job in jobs[start : start + 200]]
                body = "\n".join(json.dumps(one) for one in events).encode()
                self._post("/events", body)
        numbers = self._failures()
        assert len(numbers) == len(ids) + len(slurm), len(numbers)
        a, b = numbers_of(ids, numbers, COMMANDS), numbers_of(slurm[: REQUEUES * self._rounds], numbers, REQUEUES)
        c = numbers_of(slurm[REQUEUES * self._rounds :], numbers, SUBMISSIONS)
        return [[*one, *two, *three] for one, two, three in zip(a, b, c, strict=True)]

    def _kill_some(self, rng: random.Random, processes: dict[Victim, Process], report: Report) -> None:
        for _ in range(rng.randint(2, 3)):
            [victim] = rng.choices(VICTIMS, LIKELY)
            if victim != "service" and rng.random() < IN_ACTION:
                self._await_action(victim)
            else:
                time.sleep(rng.uniform(0.0, 0.35))
            processes[victim].kill()
            report.kills[victim] += 1
            if victim != "service":
                report.half += self._is_half_done(victim)
            processes[victim].start()

    def _await_action(self, victim: Victim) -> None:
        """Wait until a hook has begun an action, for some seconds at most: it may have nothing to do."""
        deadline = time.monotonic() + LEASE_S
        while not self._is_half_done(victim) and time.monotonic() < deadline:
            time.sleep(0.002)

    def _is_half_done(self, victim: Victim) -> int:
        kind = victim.partition(" ")[0]
        files = (self._folder / "state" / kind).glob("*.json")
        return int(any(b'\\"state\\": \\"intended\\"' in file.read_bytes() for file in files))

    def _look(self, bench: Bench, report: Report) -> None:
        """Each request was acknowledged, and the acknowledgement matches the action."""
        lines = Counter(self._lines.read_text().split())
        state = json.loads((bench.folder.parent / "slurm.json").read_text())
        jobs = {job_key(job): job for job in state["jobs"].values()}
        for cluster, request_id, job_id, ended, new_job_id in self._rows(
            "SELECT cluster, public_id, job_id, state, new_job_id FROM requests WHERE origin = 'person'"
        ):
            report.states[f"{cluster} {ended}"] += 1
            marked = [key for key, job in jobs.items() if job["comment"].endswith(f"faultline/request={request_id}")]
            times = lines[request_id] if cluster == "command" else len(marked)
            if cluster == "lab" and marked == [job_id]:
                times = jobs[job_id]["restart_cnt"]
            if times > 1:
                report.twice.append(f"{cluster} {request_id}: {times} times")
            wrong = (
                ended not in {"done", "unknown"}
                or (ended == "done" and times == 0)
                or (cluster == "lab" and (ended != "done" or marked != [new_job_id or job_id]))
                or (cluster == "lab" and jobs[marked[0]]["job_state"] != ["COMPLETED"])
            )
            if wrong:
                report.lost.append(f"{cluster} {request_id} (job {job_id}): {ended}, done {times} times, {marked}")
        held = [key for key, job in jobs.items() if job["hold"]]
        report.lost += [f"job {key} is left on hold" for key in held]
        if report.states.total() != report.asked:
            report.lost.append(f"{report.asked} were asked for, {report.states.total()} are known")

    def _open(self) -> int:
        return int(self._rows(f"SELECT count(*) FROM requests WHERE origin = 'person' AND state IN {OPEN}")[0][0])

    def _failures(self) -> dict[str, int]:
        return dict(self._rows("SELECT job_id, failure_id FROM jobs WHERE failure_id IS NOT NULL"))

    def _rows(self, statement: str) -> list[Any]:
        return self._connection.execute(statement.encode()).fetchall()

    def _up(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/health/ready", timeout=120) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _ask(self, path: str, content: object) -> None:
        self._post(path, json.dumps(content).encode())

    def _post(self, path: str, body: bytes) -> None:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/api/v1{path}", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()

    def _until(self, happened: Callable[[], bool], processes: dict[Victim, Process]) -> None:
        deadline, left = time.monotonic() + PATIENCE_S, -1
        while not happened():
            if (now := self._open()) != left:
                deadline, left = time.monotonic() + PATIENCE_S, now
            dead = [name for name, process in processes.items() if process.output_text() and not process.alive()]
            if dead or time.monotonic() > deadline:
                output = "\n".join(f"--- {name}\n{process.output_text()}" for name, process in processes.items())
                raise AssertionError(f"nothing for {PATIENCE_S:g} s; ended: {dead}; open: {left}\n{output}")
            time.sleep(0.2)


def event(cluster: str, job: str, at: datetime) -> dict[str, Any]:
    """Return a job that failed because of its node's GPU."""
    return {
        "schema": "job-completion/1",
        "cluster": cluster,
        "job_id": job,
        "attempt": 0,
        "status": "failed",
        "exit_code": 1,
        "user": USER,
        "nodes": ["gpu1"],
        "gpus": 8,
        "started_at": (at - timedelta(minutes=30)).isoformat(),
        "ended_at": at.isoformat(),
        "logs": [{"rank": 0, "node": "gpu1", "stream": "stderr", "tail": f"step {job}\n{XID}"}],
    }


def keep_for_long(bench: Bench) -> None:
    """Configure the fake to keep all jobs during the test."""
    path = bench.folder.parent / "slurm.json"
    state = json.loads(path.read_text())
    state["min_job_age"] = 100_000
    path.write_text(json.dumps(state))


def job_key(job: dict[str, Any]) -> str:
    """Return the job id in the format of squeue's %i."""
    task = job["array_task_id"]
    return str(job["job_id"]) if task is None else f"{job['array_job_id']}_{task}"


def numbers_of(jobs: Sequence[str], numbers: dict[str, int], a_round: int) -> list[list[int]]:
    """Return the failures of these jobs, by round."""
    return [[numbers[job] for job in jobs[at : at + a_round]] for at in range(0, len(jobs), a_round)]
