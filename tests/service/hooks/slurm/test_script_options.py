"""Options in a script that sbatch would follow with root's rights, although its owner may not give them."""

import pytest

from service.hooks.slurm.script_options import UnsafeScript, without_privileged_options

BODY = "srun train.py\n#SBATCH --priority=9\ncat <<END >next.sh\n#SBATCH --bbf=/etc/shadow\nEND\n"


def cleaned(*header: str) -> list[str]:
    script = "\n".join(("#!/bin/bash", *header, "", BODY))
    out = without_privileged_options(script)
    assert out.endswith(BODY), "lines after the first command are the job's own"
    return out.removesuffix(BODY).splitlines()[1:-1]


@pytest.mark.parametrize(
    "line",
    [
        "#SBATCH --job-name=train -N 2 --time 1:00:00",
        "#SBATCH -n4 -c 8 -Jtrain -H",
        '#SBATCH --comment="my own words" -o logs/%j.out',
        "#SBATCH --signal=B:USR1@60 --nice=100 --nodelist=gpu[1-4]",
        "#SBATCH --container-image=nvcr.io/nvidia/pytorch:25.01-py3 --container-mounts=/data:/data",
        " #SBATCH --priority=9",
        "# SBATCH --priority=9",
    ],
)
def test_what_an_owner_may_ask_for_stays(line: str) -> None:
    assert cleaned(line) == [line]


@pytest.mark.parametrize(
    "option",
    [
        *("--bbf=/root/secret", "--bbf /root/secret", "--burst-buffer-file=/root/secret", '--bbf="/root/secret"'),
        *("--nodefile=/root/secret", "-F/root/secret", "-F /root/secret", "--export-file=/root/secret"),
        *("--priority=4000000000", "--priority 4000000000", "--uid=0", "--gid=0", "--reboot", "--core-spec=3", "-S 3"),
        *("--wait", "-W", "--test-only", "--clusters=other", "-M other", "-Mother", "--array=0-999", "-a0-999"),
    ],
)
def test_what_only_root_may_ask_for_or_would_hold_up_the_hook_is_left_out(option: str) -> None:
    assert cleaned(f"#SBATCH --time=5 {option} -N2") == ["#SBATCH --time=5 -N2"]
    assert cleaned(f"#SBATCH {option}") == [f"##SBATCH {option}"]


@pytest.mark.parametrize(
    "line",
    [
        *("#SBATCH --prio=9", "#SBATCH --burst=/root/secret", "#SBATCH -QW", "#SBATCH -HW", "#SBATCH --site-option=1"),
        *(
            "#SBATCH --nice=-5",
            "#SBATCH --nice='-'5",
            "#SBATCH -w ./f",
            "#SBATCH --exclude=/root/secret",
            "#SBATCH -x/a",
        ),
        *("#SBATCH hetjob", "#SBATCH -N1 hetjob", "#SBATCH --pr\\iority=9", '#SBATCH --comment="a', "#SBATCH --"),
        "#SBATCH-N1 extra'",
    ],
)
def test_a_line_that_cannot_be_read_with_certainty_is_refused(line: str) -> None:
    with pytest.raises(UnsafeScript):
        cleaned(line)


def test_comments_and_lines_of_other_schedulers_are_no_way_in() -> None:
    assert cleaned("#SBATCH --time=5 # --priority=9", "#SBATCH --comment=a#--priority=9", "#PBS -p 1000") == [
        "#SBATCH --time=5",
        "#SBATCH --comment=a",
        "##PBS -p 1000",
    ]
