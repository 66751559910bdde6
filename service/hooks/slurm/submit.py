"""Derives the `sbatch` options that repeat an earlier job from that job's record.

Options in `#SBATCH` lines are in the script already; options given on the command line are only in the record.
Dependencies, signals and mail options are not repeated.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from service.formats.slurm.nodes import expand_nodes
from service.hooks.request import Request
from service.hooks.slurm.comment import with_request
from service.hooks.slurm.record import SlurmJob, text, whole

MEBIBYTE = 1 << 20
# `gres/gpu:4`, `gres/gpu:h200:4`, and with the number behind an equals sign, as the API documents it.
_GPUS = re.compile(r"gres/gpu((?:[:=][\w-]+)+)")
_PLAIN: Mapping[str, str] = {
    "--job-name": "name",
    "--partition": "partition",
    "--account": "account",
    "--qos": "qos",
    "--constraint": "features",
    "--reservation": "resv_name",
    "--licenses": "licenses",
    "--wckey": "wckey",
    "--chdir": "current_working_directory",
    "--gres": "tres_per_node",
    "--container": "container",
}
_NUMBERS: Mapping[str, str] = {
    "--cpus-per-task": "cpus_per_task",
    "--ntasks-per-node": "tasks_per_node",
    "--mem": "memory_per_node",
    "--mem-per-cpu": "memory_per_cpu",
    "--time": "time_limit",
}


def options(job: SlurmJob, request: Request, *, as_root: bool) -> list[str]:
    """Return the options, each as `--name=value`.

    Args:
        job: the earlier job.
        request: the request to execute.
        as_root: whether the hook may submit as other users (`--uid`).
    """
    raw = job.raw
    out = [f"--uid={job.user}", f"--gid={text(raw, 'group_name') or job.user}"] if as_root else []
    out += [f"{name}={value}" for name, key in _PLAIN.items() if (value := _plain(raw, name, key))]
    resources = {name: number for name, key in _NUMBERS.items() if (number := whole(raw, key))}
    changed = numbers(request.changes, job)
    if "--mem" in changed:
        resources.pop("--mem-per-cpu", None)
    out += [f"{name}={number}" for name, number in (resources | changed).items()]
    out.append(f"--nodes={job.node_count}")
    if tasks := whole(raw, "tasks"):
        out.append(f"--ntasks={tasks}")
    for name, key in (("--gpus", "tres_per_job"), ("--gpus-per-task", "tres_per_task")):
        if gpus := _GPUS.search(text(raw, key)):
            out.append(f"{name}={gpus[1][1:].replace('=', ':')}")
    if excluded := _excluded(job, request):
        out.append(f"--exclude={excluded}")
    if "_" in job.job_id:
        out.append(f"--array={job.job_id.partition('_')[2]}")
    out += _output(job)
    out += ["--requeue" if job.may_requeue else "--no-requeue", "--open-mode=append"]
    out.append(f"--comment={with_request(job.comment, request.request_id, request.resume_from)}")
    return out


def numbers(changes: Mapping[str, Any], job: SlurmJob) -> dict[str, int]:
    """Return the requested changes in Slurm's units: MiB for each node (rounded up) and minutes.

    The requested memory is that of the whole job, as in Slurm's records of its resources (`mem=` of TRES).
    """
    out = {}
    memory, limit = changes.get("memory_bytes"), changes.get("time_limit_s")
    if isinstance(memory, int) and memory > 0:
        now = whole(job.raw, "memory_per_node") or 0
        out["--mem"] = max(-(-memory // (MEBIBYTE * job.node_count)), now)
    if isinstance(limit, int) and limit > 0:
        out["--time"] = -(-limit // 60)
    return out


def update(job: SlurmJob, request: Request, required: Sequence[str] | None) -> dict[str, str]:
    """Return the `scontrol update` fields that apply the request to a requeued job and let it start at once.

    Args:
        job: the job on hold.
        request: the request to execute.
        required: the nodes that the job still requires by name; None: unchanged.
    """
    out = {"StartTime": "now"}
    if request.exclude_nodes:
        out["ExcNodeList"] = _excluded(job, request)
    if required is not None:
        out["ReqNodeList"] = ",".join(required)
    wanted = numbers(request.changes, job)
    if "--mem" in wanted:
        out["MinMemoryNode"] = str(wanted["--mem"])
    if "--time" in wanted:
        out["TimeLimit"] = str(wanted["--time"])
    out["Comment"] = with_request(job.comment, request.request_id, request.resume_from)
    return out


def _excluded(job: SlurmJob, request: Request) -> str:
    already = expand_nodes(job.excluded, "excluded_nodes")
    return ",".join([*already, *(node for node in request.exclude_nodes if node not in already)])


def _plain(raw: Mapping[str, Any], name: str, key: str) -> str:
    value = text(raw, key)
    if name == "--gres":  # `gres/gpu:4` in the record, `gpu:4` on the command line
        parts = (part.removeprefix("gres/").removeprefix("gres:") for part in value.split(",") if part)
        return ",".join(parts).replace("=", ":")
    if name == "--constraint":
        return value if re.fullmatch(r"[\w\[\]*&|(),.:-]*", value) else ""
    return value


def _output(job: SlurmJob) -> list[str]:
    """Return the output path of the record, with the job's number replaced by its pattern."""
    out = []
    whole_job, in_array, _ = job.job_id.partition("_")
    own = re.compile(rf"(?<!\d){whole_job}(?!\d)")
    for name, key in (("--output", "standard_output"), ("--error", "standard_error")):
        path = text(job.raw, key)
        if path and not (name == "--error" and path == text(job.raw, "standard_output")):
            folder, slash, file = path.rpartition("/")
            out.append(f"{name}={folder}{slash}{own.sub('%A' if in_array else '%j', file)}")
    return out
