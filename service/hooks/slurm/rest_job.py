"""Converts the fields of `scontrol update` and the options of `sbatch` into slurmrestd's job description.

The fields are those of `job_desc_msg` in data_parser v0.0.40 to v0.0.42; https://slurm.schedmd.com/rest_api.html.
Memory in MiB, times in minutes. Tested on Slurm 24.11.
"""

import grp
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

Description = dict[str, Any]


class UnsupportedOption(Exception):
    """slurmrestd cannot express this option; the text names it."""


def _number(value: str) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": int(value)}


def _list(value: str) -> list[str]:
    return [one for one in value.split(",") if one]


def _each_gres(value: str) -> str:
    return ",".join(f"gres/{one}" for one in _list(value))


def _group(value: str) -> str:
    """Return the number of a group: slurmrestd 24.11 aborts if given a name ("fatal: invalid type")."""
    try:
        return value if value.isdecimal() else str(grp.getgrnam(value).gr_gid)
    except KeyError:
        raise UnsupportedOption(f"the group {value}, which this machine does not know") from None


def _append(value: str) -> list[str]:
    return [value.upper()]


# `scontrol update` name: field, and the conversion of its value.
_CHANGES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "ExcNodeList": ("excluded_nodes", _list),
    "ReqNodeList": ("required_nodes", _list),
    "Comment": ("comment", str),
    "AdminComment": ("admin_comment", str),
    "MinMemoryNode": ("memory_per_node", _number),
    "TimeLimit": ("time_limit", _number),
}
# `sbatch` option: field, and the conversion of its value. `user_id` may be a name.
_OPTIONS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "--uid": ("user_id", str),
    "--gid": ("group_id", _group),
    "--job-name": ("name", str),
    "--partition": ("partition", str),
    "--account": ("account", str),
    "--qos": ("qos", str),
    "--constraint": ("constraints", str),
    "--reservation": ("reservation", str),
    "--licenses": ("licenses", str),
    "--wckey": ("wckey", str),
    "--chdir": ("current_working_directory", str),
    "--container": ("container", str),
    "--gres": ("tres_per_node", _each_gres),
    "--gpus": ("tres_per_job", "gres/gpu:{}".format),
    "--cpus-per-task": ("cpus_per_task", int),
    "--ntasks-per-node": ("tasks_per_node", int),
    "--ntasks": ("tasks", int),
    "--nodes": ("nodes", str),
    "--mem": ("memory_per_node", _number),
    "--mem-per-cpu": ("memory_per_cpu", _number),
    "--time": ("time_limit", _number),
    "--exclude": ("excluded_nodes", _list),
    "--array": ("array", str),
    "--output": ("standard_output", str),
    "--error": ("standard_error", str),
    "--open-mode": ("open_mode", _append),
    "--comment": ("comment", str),
}
_SWITCHES: Mapping[str, tuple[str, Any]] = {"--requeue": ("requeue", True), "--no-requeue": ("requeue", False)}
_DIRECTIVE = re.compile(r"^#SBATCH\b", re.MULTILINE)
LOGIN_ENVIRONMENT = "SLURM_GET_USER_ENV=1"  # set by `sbatch --export=NONE`: slurmd then creates the user's environment


def changed(changes: Mapping[str, str], now: datetime) -> Description:
    """Return the fields of an update.

    Raises:
        UnsupportedOption: a field has no conversion here.
    """
    out: Description = {}
    for name, value in changes.items():
        if name == "StartTime" and value == "now":
            out["begin_time"] = _number(str(int(now.timestamp())))
        elif name in _CHANGES and value:  # tested: an empty list of nodes changes nothing
            field, written = _CHANGES[name]
            out[field] = written(value)
        else:
            raise UnsupportedOption(f"{name}={value}")
    return out


def described(script: str, options: Sequence[str], environment: bytes | None, *, folder: str = "") -> Description:
    """Return the description of a job to submit.

    Args:
        script: the batch script.
        options: the options of sbatch.
        environment: the job's variables, each `NAME=value` followed by a null byte; None: as the options specify.
        folder: the value of SLURM_SUBMIT_DIR in the job.

    Raises:
        UnsupportedOption: the script contains options, which only sbatch parses, or an option has no conversion here.
    """
    if _DIRECTIVE.search(script):
        raise UnsupportedOption("the #SBATCH lines of its script")
    if any("\ud800" <= char <= "\udfff" for char in script):
        raise UnsupportedOption("a script that is not UTF-8")
    out: Description = {}
    for option in options:
        name, equals, value = option.partition("=")
        if name in _SWITCHES and not equals:
            field, out_value = _SWITCHES[name]
            out[field] = out_value
        elif name in _OPTIONS:
            field, written = _OPTIONS[name]
            out[field] = written(value)
        elif option == "--export=NONE" and environment is None:
            out["environment"] = [LOGIN_ENVIRONMENT]
        else:
            raise UnsupportedOption(option)
    if environment is not None:
        try:
            out["environment"] = [one for one in environment.decode().split("\0") if one]
        except UnicodeDecodeError:
            raise UnsupportedOption("an environment that is not UTF-8") from None
    if not out.get("environment"):
        raise UnsupportedOption("an empty environment")
    if folder:
        out["environment"].append(f"SLURM_SUBMIT_DIR={folder}")
    out.setdefault("current_working_directory", folder or "/")
    return out
