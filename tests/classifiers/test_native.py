"""The compiled modules find the same evidence and features as the sources."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from service import native_modules

build_native: Any = import_module("deploy.build_native")  # a program, not a package
ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-m", "tests.classifiers.print_evidence"]
ENVIRON = {**os.environ, "PYTHONHASHSEED": "0"}


def printed(*arguments: str) -> list[str]:
    done = subprocess.run([*PROGRAM, *arguments], cwd=ROOT, env=ENVIRON, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.slow
def test_compiled_modules_find_the_same_as_their_sources(tmp_path: Path) -> None:
    if (missing := build_native.missing_part()) is not None:
        pytest.skip(missing)
    folder = native_modules.folder_of_environment()
    if native_modules.files_of(folder) is None:  # `make install` has not compiled these sources
        folder = tmp_path / "native"
        command = [sys.executable, "deploy/build_native.py", "--output", str(folder)]
        built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    sources, compiled = printed(), printed(str(folder))
    assert len(sources) > 150
    assert [(one, other) for one, other in zip(sources, compiled, strict=True) if one != other] == []


def test_without_a_compiler_nothing_is_compiled_and_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    (tmp_path / "native").mkdir()
    assert build_native.main(["--output", str(tmp_path / "native")]) == 0
    assert "no C compiler (no-such-compiler)" in capsys.readouterr().out
    assert not (tmp_path / "native").exists()  # what was compiled before may be of other sources


def test_what_compiled_modules_rely_on_is_known() -> None:
    compiled = build_native.compiled_sources()
    known = build_native.all_sources(compiled)
    assert set(compiled) < set(known)
    assert {"classifiers/contracts.py", "classifiers/signatures.py", "classifiers/taxonomy.py"} <= set(known)
    assert not any(path.endswith("__init__.py") for path in compiled)


def test_every_module_that_reads_evidence_is_compiled_however_deep_its_folder() -> None:
    folders = ("explanation", "extraction", "fleet_evidence", "relevance")
    sources = {
        path.relative_to(ROOT).as_posix() for name in folders for path in (ROOT / "classifiers" / name).rglob("*.py")
    }
    left_out = {*build_native.LEFT_OUT, *(path for path in sources if path.endswith("__init__.py"))}
    assert sources - left_out <= set(build_native.compiled_sources())


def test_every_pattern_of_modules_to_compile_finds_one() -> None:
    assert [pattern for pattern in build_native.MODULES if not list(ROOT.glob(pattern))] == []
