from typing import Any

import pytest

from service.hooks.slurm import submit
from service.hooks.slurm.record import SlurmJob, read_job
from tests.service.hooks.sample_requests import request


def number(value: int | None) -> dict[str, Any]:
    return {"set": value is not None, "infinite": False, "number": value or 0}


def job(**changes: Any) -> SlurmJob:
    """As `scontrol show job --json` of Slurm 24.11 has it, cut to what is read."""
    plain: dict[str, Any] = {
        "job_id": 884120,
        "array_job_id": number(0),
        "array_task_id": number(None),
        "job_state": ["FAILED"],
        "restart_cnt": 0,
        "hold": False,
        "comment": "mine",
        "user_name": "ana",
        "group_name": "vision",
        "batch_flag": True,
        "requeue": True,
        "partition": "h200",
        "account": "lab",
        "qos": "normal",
        "name": "vit-g",
        "node_count": number(2),
        "tasks": number(16),
        "cpus_per_task": number(24),
        "memory_per_node": number(3072),
        "memory_per_cpu": number(None),
        "time_limit": number(2880),
        "tres_per_node": "gres/gpu:h200:8",
        "tres_per_job": "",
        "excluded_nodes": "gpu[001-002]",
        "required_nodes": "",
        "standard_output": "/home/ana/run7/vit-884120.out",
        "standard_error": "/home/ana/run7/vit-884120.out",
        "current_working_directory": "/home/ana/run7",
    }
    return read_job(plain | changes)


def test_a_submission_asks_for_what_the_first_one_had() -> None:
    asked = submit.options(job(), request("884120", exclude_nodes=("gpu018", "gpu001")), as_root=True)
    assert asked == [
        "--uid=ana",
        "--gid=vision",
        "--job-name=vit-g",
        "--partition=h200",
        "--account=lab",
        "--qos=normal",
        "--chdir=/home/ana/run7",
        "--gres=gpu:h200:8",
        "--cpus-per-task=24",
        "--mem=3072",
        "--time=2880",
        "--nodes=2",
        "--ntasks=16",
        "--exclude=gpu001,gpu002,gpu018",
        "--output=/home/ana/run7/vit-%j.out",
        "--requeue",
        "--open-mode=append",
        "--comment=mine faultline/request=r1",
    ]


@pytest.mark.parametrize("typed", ["gres/gpu:h200:4", "gres/gpu:h200=4"])
def test_gpus_of_the_job_of_a_node_and_of_a_task_are_asked_for_again(typed: str) -> None:
    asked = submit.options(job(tres_per_job=typed, tres_per_node=typed, tres_per_task=typed), request(), as_root=True)
    assert {"--gpus=h200:4", "--gres=gpu:h200:4", "--gpus-per-task=h200:4"} <= set(asked)
    plain = submit.options(job(tres_per_task="cpu=24,gres/gpu=1"), request(), as_root=True)
    assert "--gpus-per-task=1" in plain


def test_what_a_user_wrote_can_not_become_an_option() -> None:
    made = job(name="x --uid=root\n--exclude=a", account="--wrap=id", comment="--parsable")
    asked = submit.options(made, request(), as_root=False)
    assert all(option.startswith("--") and "=" in option for option in asked if option not in FLAGS)
    assert "--account=--wrap=id" in asked
    assert not any(option.startswith(("--uid", "--wrap", "--parsable")) for option in asked)


FLAGS = ("--requeue", "--no-requeue")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"memory_bytes": 6 << 30}, {"--mem": 6144}),
        ({"memory_bytes": (1 << 20) + 1, "time_limit_s": 61}, {"--mem": 2, "--time": 2}),
        ({"memory_bytes": "6G", "batch_size": 8, "time_limit_s": -1}, {}),
    ],
)
def test_changes_are_rounded_up_into_slurms_units(changes: dict[str, Any], expected: dict[str, int]) -> None:
    small = job(node_count=number(1), memory_per_node=number(None))
    assert submit.numbers(changes, small) == expected


def test_more_memory_for_the_job_is_divided_among_its_nodes() -> None:
    """A record of Slurm has the memory of all nodes together, `--mem` is that of each."""
    wanted = request(changes={"memory_bytes": 9 << 30})  # 1.5 times 2 nodes of 3 GiB
    assert "--mem=4608" in submit.options(job(), wanted, as_root=True)
    assert submit.update(job(), wanted, None)["MinMemoryNode"] == "4608"
    less = request(changes={"memory_bytes": 4 << 30})
    assert submit.update(job(), less, None)["MinMemoryNode"] == "3072"


def test_more_memory_for_the_node_takes_the_place_of_memory_for_each_core() -> None:
    made = job(memory_per_node=number(None), memory_per_cpu=number(512), node_count=number(1))
    asked = submit.options(made, request(changes={"memory_bytes": 8 << 30}), as_root=True)
    assert "--mem=8192" in asked
    assert not any(option.startswith("--mem-per-cpu") for option in asked)


def test_a_task_of_an_array_keeps_its_number_and_its_own_log() -> None:
    made = job(
        job_id=884125,
        array_job_id=number(884120),
        array_task_id=number(5),
        standard_output="/home/ana/%x-%A_%a.out",
        standard_error="/home/ana/884120_5.err",
    )
    asked = submit.options(made, request(made.job_id), as_root=True)
    assert made.job_id == "884120_5"
    for option in ("--array=5", "--output=/home/ana/%x-%A_%a.out", "--error=/home/ana/%A_5.err"):
        assert option in asked


def test_an_update_changes_what_is_asked_for_and_nothing_else() -> None:
    wanted = request(exclude_nodes=("gpu018",), resume_from="/ckpt/100")
    assert submit.update(job(), wanted, None) == {
        "StartTime": "now",
        "ExcNodeList": "gpu001,gpu002,gpu018",
        "Comment": "mine faultline/resume=/ckpt/100 faultline/request=r1",
    }
    assert submit.update(job(), request(exclude_nodes=()), []) == {
        "StartTime": "now",
        "ReqNodeList": "",
        "Comment": "mine faultline/request=r1",
    }


@pytest.mark.parametrize("raw", [{}, {"job_state": []}, {"job_state": ["FAILED"]}, {"job_state": 5, "job_id": 7}])
def test_output_that_is_not_a_record_of_a_job_is_reported(raw: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_job(raw)
