"""A wheel, installed away from the checkout, carries every data file its commands need."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EVENT = {
    "schema": "job-completion/1",
    "cluster": "orion",
    "job_id": "7",
    "attempt": 0,
    "status": "failed",
    "exit_code": 1,
    "ended_at": "2026-11-20T10:00:00Z",
    "logs": [{"rank": 0, "stream": "stderr", "tail": "ModuleNotFoundError: No module named 'einops'"}],
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files in a folder of their own; what it depends on comes from the running environment."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    skipped = shutil.ignore_patterns(".git", ".venv*", "build", "dist", "*.egg-info", "var", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, source, ignore=skipped)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(build, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    shutil.rmtree(source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder / "site"), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    return folder


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}
    return kept | {
        "PYTHONPATH": str(folder / "site"),
        "FAULTLINE_MODEL_DIR": str(folder / "model"),
        "FAULTLINE_DATABASE_URL": f"sqlite:///{folder}/wheel.sqlite3",
    }


def run(folder: Path, *arguments: str, stdin: str = "") -> str:
    command = [sys.executable, "-m", "service", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment(folder), input=stdin, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_trains_classifies_migrates_and_serves(installed: Path) -> None:
    where = (
        "import service, classifiers, migrations; print(service.__file__, classifiers.__file__, migrations.__file__)"
    )
    found = subprocess.run(
        [sys.executable, "-c", where],
        cwd=installed,
        env=environment(installed),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert found.count(str(installed / "site")) == 3
    run(installed, "train")
    verdict = json.loads(run(installed, "classify", "-", stdin=json.dumps(EVENT)))
    assert (verdict["side"], verdict["category"], verdict["resubmit"]) == ("user", "EE.2", False)
    run(installed, "db", "upgrade")
    run(installed, "db", "check")

    command = [sys.executable, "-m", "service", "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=installed, env=environment(installed), stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stderr is not None
            told = (re.search(r"http://127\.0\.0\.1:\d+", line) for line in server.stderr)
            url = next(match[0] for match in told if match)
            with urllib.request.urlopen(f"{url}/") as page:
                assert b"Faultline" in page.read()
            with urllib.request.urlopen(f"{url}/health/ready") as ready:
                assert ready.status == 200
        finally:
            server.terminate()
            server.communicate(timeout=30)
        assert server.returncode == 0
