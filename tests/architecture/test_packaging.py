"""Metadata of the package: licence, one version, security policy, the commands of the Makefile."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import metadata, version
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = (
    "install", "demo", "test", "test-deps", "check", "lint", "bench", "simulate", "suspicion", "soak",
    "faultlab-check", "lock", "release", "clean", "help",
)  # fmt: skip


def makefile() -> str:
    return (ROOT / "Makefile").read_text(encoding="utf-8")


def test_the_licence_is_apache_2() -> None:
    assert PROJECT["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert metadata("faultline")["License-Expression"] == "Apache-2.0"


def test_the_security_policy_says_how_to_report_and_what_is_supported() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "SECURITY.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert headings[:2] == ["Report a vulnerability", "Supported versions"]
    assert "In scope" in headings


def test_the_version_comes_from_the_project_file() -> None:
    expected = PROJECT["version"]
    assert version("faultline") == expected
    done = subprocess.run(
        [sys.executable, "-m", "service", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"faultline {expected}\n"


def test_chart_and_manifests_name_the_version_of_the_project() -> None:
    chart = yaml.safe_load((ROOT / "deploy/kubernetes/faultline/Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (PROJECT["version"], PROJECT["version"])
    manifests = (ROOT / "deploy/hooks/kubernetes.yaml").read_text(encoding="utf-8")
    named = re.findall(r"app\.kubernetes\.io/version: \"(.+)\"|image: faultline:(\S+)", manifests)
    assert {label or image for label, image in named} == {PROJECT["version"]}


def test_no_python_file_repeats_the_version() -> None:
    pattern = re.compile(rf"[\"']{re.escape(PROJECT['version'])}[\"']")
    repeated = [
        str(path.relative_to(ROOT))
        for package in ("classifiers", "service", "migrations", "deploy")
        for path in (ROOT / package).rglob("*.py")
        if "programs" not in path.parts and pattern.search(path.read_text(encoding="utf-8"))
    ]
    assert repeated == []


def test_make_help_lists_every_target_with_one_line() -> None:
    listed = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    commands = {line.split()[0] for line in listed.splitlines()}
    phony = re.search(r"^\.PHONY: (.+)$", makefile(), flags=re.MULTILINE)
    assert phony is not None
    assert commands == set(phony[1].split())
    assert set(TARGETS) <= commands


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_make_installs_from_the_lock_files_with_hashes(lock: str) -> None:
    assert f"--require-hashes -r {lock}" in makefile()
