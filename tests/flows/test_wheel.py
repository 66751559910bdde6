"""A release: its wheel, installed into an empty environment, diagnoses and serves without training first."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import urllib.request
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from service.settings import default_model_dir
from tests.architecture.test_dependencies import locked
from tests.labs.need import missing

ROOT = Path(__file__).parents[2]
LARGEST_WHEEL = 40_000_000
LARGEST_MODEL = 30_000_000
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

VENDORED = ROOT / "service" / "web" / "static" / "vendor" / "manifest.json"


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel in it; its dependencies come from the running environment."""

    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def variables(self) -> Mapping[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("FAULTLINE_") and "PYTHON" not in name
        }
        return kept | {"FAULTLINE_DATABASE_URL": f"sqlite:///{self.folder}/wheel.sqlite3"}

    def run(self, *command: str, stdin: str = "") -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.variables, input=stdin, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def faultline(self, *arguments: str, stdin: str = "") -> str:
        return self.run(str(self.folder / "bin" / "faultline"), *arguments, stdin=stdin)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release folder with the model that was trained in this environment."""
    model = Path(os.environ.get("FAULTLINE_MODEL_DIR") or default_model_dir())
    if not (model / "manifest.json").exists():
        missing("no model is trained (make install)")
    output = tmp_path_factory.mktemp("release") / "dist"
    command = [
        sys.executable,
        "deploy/build_release.py",
        "--no-isolation",
        "--model",
        str(model),
        "--output",
        str(output),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output


@pytest.fixture(scope="module")
def wheel(release: Path) -> Path:
    [found] = release.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = Environment(tmp_path_factory.mktemp("wheel") / "venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made.folder)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", made.python, "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--no-compile", str(wheel)], check=True, capture_output=True)
    # Searched after its own packages: the wheel's modules come first, an editable install there is not visible.
    [site] = made.folder.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return made


def test_the_wheel_carries_a_model_and_the_licence_but_no_lab_and_no_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "classifiers/trained_model/manifest.json" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert [name for name in names if "faultlab" in name or name.startswith(("tests/", "deploy/"))] == []
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {
        "classifiers",
        "service",
        "migrations",
        "faultline",
    }


def test_the_wheel_carries_every_file_of_its_packages(wheel: Path) -> None:
    """The wheel contains the training data: kinds, captured cases, catalogue."""
    tracked = subprocess.run(
        ["git", "ls-files", "classifiers", "service", "migrations"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    with zipfile.ZipFile(wheel) as archive:
        assert {name for name in tracked if (ROOT / name).exists()} - set(archive.namelist()) == set()


def test_the_wheel_and_its_model_are_small(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        model = sum(one.file_size for one in archive.infolist() if "trained_model/" in one.filename)
        assert 0 < model <= LARGEST_MODEL
        parts = sorted(archive.infolist(), key=lambda one: one.compress_size, reverse=True)[:5]
    largest = ", ".join(f"{one.filename} {one.compress_size / 1e6:.1f} MB" for one in parts)
    size = wheel.stat().st_size
    assert size <= LARGEST_WHEEL, f"{size / 1e6:.1f} MB instead of {LARGEST_WHEEL / 1e6:.0f}; the largest: {largest}"


def test_the_sbom_lists_every_locked_dependency(release: Path) -> None:
    [path] = release.glob("*.cdx.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["bomFormat"] == "CycloneDX"
    assert document["metadata"]["component"]["name"] == "faultline"
    listed = {f"{one['name']}=={one['version']}" for one in document["components"]}
    pins = locked("deploy/requirements.lock")
    vendored = {f"{one['name']}=={one['version']}" for one in json.loads(VENDORED.read_text(encoding="utf-8"))}
    assert listed == {f"{pin.name}{pin.specifier}" for several in pins.values() for pin in several} | vendored


def test_the_sdist_carries_what_an_install_needs(release: Path) -> None:
    [sdist] = release.glob("*.tar.gz")
    listed = subprocess.run(["tar", "tzf", str(sdist)], capture_output=True, text=True, check=True).stdout.split()
    files = {name.partition("/")[2] for name in listed}
    assert {"pyproject.toml", "LICENSE", "README.md", "requirements.lock", "service/__main__.py"} <= files


def test_an_installed_wheel_diagnoses_without_training(environment: Environment) -> None:
    where = "import service, classifiers, migrations as m; print(service.__file__, classifiers.__file__, m.__file__)"
    assert environment.run(environment.python, "-c", where).count(str(environment.folder)) == 3
    verdict = json.loads(environment.faultline("classify", "-", stdin=json.dumps(EVENT)))
    assert (verdict["side"], verdict["category"], verdict["resubmit"]) == ("user", "EE.2", False)


def test_an_installed_wheel_migrates_and_serves(environment: Environment) -> None:
    environment.faultline("db", "upgrade")
    environment.faultline("db", "check")
    command = [environment.python, "-m", "service", "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=environment.folder, env=environment.variables, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stderr is not None
            addresses = (re.search(r"http://127\.0\.0\.1:\d+", line) for line in server.stderr)
            url = next(match[0] for match in addresses if match)
            with urllib.request.urlopen(f"{url}/") as page:
                assert b"Faultline" in page.read()
            with urllib.request.urlopen(f"{url}/health/ready") as ready:
                assert ready.status == 200
        finally:
            server.terminate()
            server.communicate(timeout=120)
        assert server.returncode == 0
