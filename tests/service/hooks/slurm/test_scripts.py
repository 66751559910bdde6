from pathlib import Path

import pytest

from service.clock import SystemClock
from service.errors import ConfigurationError
from service.hooks.slurm import scripts
from service.hooks.slurm.rest_job import UnsupportedOption, described
from service.hooks.slurm.script_options import without_privileged_options
from service.hooks.slurm.tools import SlurmCommands
from tests.service.hooks.slurm.test_submit import job, number

KEPT = b"PATH=/my/bin\0MULTI=a\nb\0"


def spool_of(folder: Path, content: bytes, number_of: int = 884120) -> Path:
    place = folder / f"hash.{number_of % 10}" / f"job.{number_of}"
    place.mkdir(parents=True)
    (place / "environment").write_bytes(content)
    return folder


def test_the_jobs_own_variables_are_read_and_slurms_are_left_out(tmp_path: Path) -> None:
    content = b"\x03\0\0\0" + KEPT + b"SLURM_SUBMIT_DIR=/home/ana\0"
    assert scripts.spooled_environment(spool_of(tmp_path, content), job()) == KEPT


def test_the_tasks_of_an_array_share_one(tmp_path: Path) -> None:
    task = job(job_id=884127, array_job_id=number(884120), array_task_id=number(7))
    assert scripts.spooled_environment(spool_of(tmp_path, b"\x02\0\0\0" + KEPT), task) == KEPT


@pytest.mark.parametrize("content", [b"", b"\x02\0", b"\x09\0\0\0" + KEPT, b"\x02\0\0\0" + KEPT[:-3]])
def test_an_incomplete_script_is_not_used(tmp_path: Path, content: bytes) -> None:
    assert scripts.spooled_environment(spool_of(tmp_path, content), job()) is None


def test_a_script_in_another_encoding_is_submitted_again_as_it_was(tmp_path: Path) -> None:
    script = b"#!/bin/bash\ncd /home/ana/r\xe9sultats\nprintf 'a\r\nb\rc'\n"
    (tmp_path / "script").write_bytes(script)
    for tool, body in (("scontrol", f"cat {tmp_path}/script"), ("sbatch", f"cat > {tmp_path}/submitted; echo 7")):
        (tmp_path / tool).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / tool).chmod(0o755)
    commands = SlurmCommands(tmp_path)
    store = scripts.ScriptStore(tmp_path / "saved", SystemClock())
    store.save(job(), without_privileged_options(commands.script("884120")))
    saved = store.get("884120")
    assert saved is not None
    assert commands.submit(saved.script, []) == "7"
    assert (tmp_path / "submitted").read_bytes() == script
    with pytest.raises(UnsupportedOption, match="not UTF-8"):
        described(saved.script, ["--export=NONE"], None)


def test_a_job_without_a_saved_script_has_none(tmp_path: Path) -> None:
    assert scripts.spooled_environment(tmp_path, job()) is None


@pytest.mark.parametrize("others_write", ["state", "state/scripts"])
def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, others_write: str) -> None:
    """Who writes there chooses a script and the name of the user it runs as."""
    folder = tmp_path / "state" / "scripts"
    folder.mkdir(mode=0o700, parents=True)
    scripts.ScriptStore(folder, SystemClock())
    (tmp_path / others_write).chmod(0o777)
    with pytest.raises(ConfigurationError, match="nobody else may write"):
        scripts.ScriptStore(folder, SystemClock())


def test_a_link_to_the_folder_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    (tmp_path / "scripts").symlink_to("theirs")
    with pytest.raises(ConfigurationError, match="nobody else may write"):
        scripts.ScriptStore(tmp_path / "scripts", SystemClock())
