from datetime import UTC, datetime

import pytest

from service.hooks.slurm import rest_job, submit
from service.hooks.slurm.rest_job import UnsupportedOption
from tests.service.hooks.sample_requests import request
from tests.service.hooks.slurm.test_submit import job

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def number(value: int) -> dict[str, object]:
    return {"set": True, "infinite": False, "number": value}


def test_a_job_is_described_as_sbatch_would_be_asked_for_it() -> None:
    record = job(group_name="root", excluded_nodes="gpu001")
    options = submit.options(record, request("884120", "r7", exclude_nodes=("gpu018",)), as_root=True)
    made = rest_job.described("#!/bin/bash\ntrain\n", options, b"A=1\0PATH=/bin\0", folder="/home/ana/run7")
    assert made == {
        "user_id": "ana",
        "group_id": "0",  # by number: a name ends slurmrestd 24.11
        "name": "vit-g",
        "partition": "h200",
        "account": "lab",
        "qos": "normal",
        "current_working_directory": "/home/ana/run7",
        "tres_per_node": "gres/gpu:h200:8",
        "cpus_per_task": 24,
        "memory_per_node": number(3072),
        "time_limit": number(2880),
        "nodes": "2",
        "tasks": 16,
        "excluded_nodes": ["gpu001", "gpu018"],
        "standard_output": "/home/ana/run7/vit-%j.out",
        "requeue": True,
        "open_mode": ["APPEND"],
        "comment": "mine faultline/request=r7",
        "environment": ["A=1", "PATH=/bin", "SLURM_SUBMIT_DIR=/home/ana/run7"],
    }


@pytest.mark.parametrize(
    ("script", "options", "environment", "named"),
    [
        ("#!/bin/bash\n#SBATCH --exclusive\n", ["--export=NONE"], None, "#SBATCH"),
        ("#!/bin/bash\n", ["--export=NONE", "--exclusive=user"], None, "--exclusive=user"),
        ("#!/bin/bash\n", ["--gid=no-such-group", "--export=NONE"], None, "no-such-group"),
        ("#!/bin/bash\n", ["--export=NONE"], b"A=1\0", "--export=NONE"),
        ("#!/bin/bash\n", [], b"A=\xff\0", "UTF-8"),
        ("#!/bin/bash\n", [], b"", "empty environment"),
        ("#!/bin/bash\n", [], None, "empty environment"),
    ],
)
def test_what_would_be_lost_is_named(script: str, options: list[str], environment: bytes | None, named: str) -> None:
    with pytest.raises(UnsupportedOption, match=named):
        rest_job.described(script, options, environment)


def test_a_change_is_described_and_what_is_not_known_is_named() -> None:
    wanted = {"StartTime": "now", "ExcNodeList": "gpu1,gpu2", "MinMemoryNode": "200", "TimeLimit": "61", "Comment": "c"}
    assert rest_job.changed(wanted, NOW) == {
        "begin_time": number(int(NOW.timestamp())),
        "excluded_nodes": ["gpu1", "gpu2"],
        "memory_per_node": number(200),
        "time_limit": number(61),
        "comment": "c",
    }
    for wrong in ({"Nice": "5"}, {"StartTime": "tomorrow"}, {"ReqNodeList": ""}):
        with pytest.raises(UnsupportedOption, match=next(iter(wrong))):
            rest_job.changed(wrong, NOW)
