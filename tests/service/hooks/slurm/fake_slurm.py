"""Slurm's commands as the hook uses them, over one file: what the lab's controller answers, without daemons.

`fake_slurm.py STATE TOOL ARGUMENT...`; jobs run to their end, with bash, as soon as they may. A script with `sleep 600`
in it goes on for ever. It passes the same suite as the lab (test_scheduler.py).
"""

import fcntl
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

NODES = ("gpu1", "gpu2", "gpu3", "gpu4")
EMPTY = '{"next": 1, "jobs": {}, "min_job_age": 300}'
DELAY_S = 120  # what Slurm lets a requeued job wait
Job = dict[str, Any]


class No(Exception):
    """What the command says on its way out."""


def main(state_file: str, tool: str, arguments: list[str]) -> int:
    path = Path(state_file)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = json.loads(path.read_text()) if path.exists() else json.loads(EMPTY)
        state["spool"] = str(path.with_name("spool"))
        if state.get("away"):
            print("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", file=sys.stderr)
            return 1
        try:
            printed = TOOLS[tool](state, arguments)
        except No as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            fresh = path.with_suffix(".fresh")
            fresh.write_text(json.dumps(state))
            fresh.replace(path)
        advance(state)
        fresh.write_text(json.dumps(state))
        fresh.replace(path)
    sys.stdout.write(printed)
    return 0


def advance(state: Job) -> None:
    """Run what may run, forget what ended long ago."""
    now = int(time.time())
    for job in state["jobs"].values():
        if job["job_state"] == ["PENDING"] and not job["hold"] and job["eligible_time"] <= now:
            start(job, now)
    old = [
        key for key, job in state["jobs"].items() if job["end_time"] and job["end_time"] + state["min_job_age"] < now
    ]
    for key in old:
        del state["jobs"][key]


def start(job: Job, now: int) -> None:
    import subprocess  # noqa: PLC0415 - most commands start no job

    required = [node for node in job["required_nodes"].split(",") if node]
    free = [node for node in NODES if node not in job["excluded_nodes"].split(",")]
    if not set(required) <= set(free):
        job["state_reason"], job["hold"] = "BadConstraints", True
        return
    node = (required or free)[0]
    job.update(job_state=["RUNNING"], nodes=node, start_time=now, end_time=0)
    if "sleep 600" in job["script"]:
        return
    task = job["array_task_id"]
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "SLURMD_NODENAME": node,
        "SLURM_RESTART_COUNT": str(job["restart_cnt"]),
    }
    with Path(job["standard_output"]).open("ab") as output:
        code = subprocess.run(
            ["bash", "-s"],
            input=job["script"].encode(),
            stdout=output,
            stderr=output,
            env=job["environment"] | environment | ({} if task is None else {"SLURM_ARRAY_TASK_ID": str(task)}),
            check=False,
        ).returncode
    job.update(job_state=["COMPLETED" if code == 0 else "FAILED"], end_time=int(time.time()))
    job["state_reason"] = "None" if code == 0 else "NonZeroExitCode"


def get(state: Job, name: str, what: str = "") -> Job:
    for job in state["jobs"].values():
        if name in {key_of(job), str(job["job_id"])}:
            return job  # type: ignore[no-any-return]
    raise No(f"{what}Invalid job id specified" + ("" if what else f" for job {name}"))


def key_of(job: Job) -> str:
    return str(job["job_id"]) if job["array_task_id"] is None else f"{job['array_job_id']}_{job['array_task_id']}"


def scontrol(state: Job, arguments: list[str]) -> str:
    match arguments:
        case ["show", "config"]:
            return f"MaxJobId                = 67043328\nMinJobAge               = {state['min_job_age']} sec\n"
        case ["show", "job", name, "--json"]:
            return json.dumps({"jobs": [get(state, name, "slurm_load_jobs error: ")]})
        case ["write", "batch_script", name, "-"]:
            return str(get(state, name, "job script retrieval failed: ")["script"])
        case ["requeuehold" | "requeue" as how, name]:
            job = get(state, name)
            if job["job_state"] == ["PENDING"]:
                raise No(f"Job is pending execution for job {name}")
            now = int(time.time())
            job.update(job_state=["PENDING"], hold=how == "requeuehold", submit_time=now, nodes="")
            job.update(eligible_time=now + DELAY_S, start_time=now + DELAY_S, restart_cnt=job["restart_cnt"] + 1)
            job.update(end_time=0, state_description="job requeued in held state" if job["hold"] else "")
            return ""
        case ["release", name]:
            job = get(state, name)
            job.update(hold=False, state_description="", state_reason="None")
            return ""
        case ["update", first, *words]:
            update(get(state, first.partition("=")[2]), words)
            return ""
    raise AssertionError(arguments)


def update(job: Job, words: list[str]) -> None:
    if job["end_time"]:
        raise No(f"Job has already finished for job {key_of(job)}")
    for word in words:
        name, _, value = word.partition("=")
        match name:
            case "StartTime":
                assert value == "now"
                job["eligible_time"] = int(time.time())
            case "ExcNodeList":
                if not set(value.split(",")) <= set(NODES):
                    raise No("Invalid node name specified for job")
                job["excluded_nodes"] = value
            case "ReqNodeList":
                job["required_nodes"] = value
            case "Comment" | "AdminComment":
                job[{"Comment": "comment", "AdminComment": "admin_comment"}[name]] = value
            case "MinMemoryNode":
                job["memory_per_node"] = number(int(value))
            case "TimeLimit":
                job["time_limit"] = number(int(value))
            case _:
                raise No(f"Update of this parameter is not supported: {word}")


def squeue(state: Job, arguments: list[str]) -> str:
    wanted = next(word.partition("=")[2] for word in arguments if word.startswith("--states="))
    rows = []
    for job in state["jobs"].values():
        if wanted == "all" or job["job_state"][0] in wanted.split(","):
            if any(word.startswith("--Format=") for word in arguments):
                rows.append(f"{key_of(job):64}{job['restart_cnt']:<16}")
            else:
                rows.append(f"{key_of(job)}|{job['comment'] or '(null)'}")
    return "".join(f"{row}\n" for row in rows)


def sinfo(state: Job, arguments: list[str]) -> str:
    del state, arguments
    return "".join(f"{node}|gpu\n" for node in NODES)


def scancel(state: Job, arguments: list[str]) -> str:
    get(state, arguments[0]).update(job_state=["CANCELLED"], end_time=int(time.time()))
    return ""


def sbatch(state: Job, arguments: list[str]) -> str:
    given = {name: value for name, _, value in (word.removeprefix("--").partition("=") for word in arguments)}
    excluded = given.get("exclude", "")
    if not set(excluded.split(",")) <= {*NODES, ""}:
        raise No("sbatch: error: Batch job submission failed: Invalid node name specified")
    now, base = int(time.time()), state["next"]
    script = sys.stdin.read()
    if "export-file" in given:
        with os.fdopen(int(given["export-file"])) as handed:
            variables = [one for one in handed.read().split("\0") if one]
    else:
        variables = [one for one in given["export"].split(",") if "=" in one]
    keep(Path(state["spool"]), base, variables)
    for offset, task in enumerate(given["array"].split(",") if "array" in given else [None]):
        number_of = base + offset
        output = given["output"].replace("%j", str(number_of)).replace("%A", str(base)).replace("%a", str(task))
        state["jobs"][str(number_of)] = {
            "job_id": number_of,
            "array_job_id": number(base if task is not None else 0),
            "array_task_id": None if task is None else int(task),
            "job_state": ["PENDING"],
            "state_reason": "None",
            "state_description": "",
            "restart_cnt": 0,
            "hold": False,
            "submit_time": now,
            "eligible_time": now,
            "start_time": 0,
            "end_time": 0,
            "comment": given.get("comment", ""),
            "admin_comment": "",
            "user_name": given.get("uid", "root"),
            "batch_flag": True,
            "requeue": "no-requeue" not in given,
            "partition": "gpu",
            "node_count": number(int(given.get("nodes", "1"))),
            "excluded_nodes": excluded,
            "required_nodes": given.get("nodelist", ""),
            "standard_output": output,
            "name": given.get("job-name", "sbatch"),
            "memory_per_node": number(int(given.get("mem", "1024"))),
            "time_limit": number(int(given.get("time", "0"))),
            "current_working_directory": given.get("chdir", "/"),
            "nodes": "",
            "script": script,
            "environment": dict(one.split("=", 1) for one in variables),
        }
    state["next"] = max(int(key) for key in state["jobs"]) + 1
    if "array" in given:
        for job in state["jobs"].values():
            if isinstance(job["array_job_id"], dict):
                job["array_job_id"] = job["array_job_id"]["number"]
    return f"{base}\n"


def keep(spool: Path, job: int, variables: list[str]) -> None:
    """The environment as the controller keeps it."""
    folder = spool / f"hash.{job % 10}" / f"job.{job}"
    folder.mkdir(parents=True)
    content = "".join(f"{one}\0" for one in ["SLURM_CONF=/etc/slurm/slurm.conf", *variables])
    (folder / "environment").write_bytes((len(variables) + 1).to_bytes(4, "little") + content.encode())


def number(value: int) -> Job:
    return {"set": value > 0, "infinite": False, "number": value}


TOOLS = {"scontrol": scontrol, "squeue": squeue, "sinfo": sinfo, "sbatch": sbatch, "scancel": scancel}


def install(folder: Path) -> Path:
    """Make the commands in `folder`/bin; their state lies beside."""
    bin_folder = folder / "bin"
    bin_folder.mkdir(parents=True)
    for tool in TOOLS:
        command = bin_folder / tool
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -SEs {__file__} {folder}/slurm.json {tool} "$@"\n')
        command.chmod(0o755)
    return bin_folder


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
