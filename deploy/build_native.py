"""Compiles the modules that take most of the processor time with mypyc, for this Python and machine.

usage: python deploy/build_native.py [--output .venv/share/faultline/native]

Without a C compiler, the headers of Python or mypy, it says so and does nothing: the program then runs the sources,
with the same results. `service.native_modules` uses what is compiled as long as the sources do not change.
"""

import argparse
import ast
import contextlib
import io
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import orjson

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from service import native_modules  # noqa: E402 - the program runs from a checkout without an installed package

GROUP = "faultline_native"
# Pure functions of texts. Modules whose objects are pickled, and those that NumPy spends its time in, stay as they are.
MODULES = (
    "classifiers/explanation/**/*.py",
    "classifiers/extraction/**/*.py",
    "classifiers/fleet_evidence/**/*.py",
    "classifiers/relevance/**/*.py",
    "classifiers/case_builder.py",
    "classifiers/fingerprint.py",
    "classifiers/input_measures.py",
    "classifiers/line_hashes.py",
    "classifiers/patterns/literal_search.py",
    "classifiers/masking.py",
    "classifiers/node_names.py",
    "classifiers/observation_names.py",
    "classifiers/own_frame.py",
    "classifiers/owner_summary.py",
    "classifiers/redaction.py",
    "classifiers/secrets/finder.py",
    "classifiers/secrets/named_values.py",
    "classifiers/suspected_place.py",
    "classifiers/model/tokenizer.py",
    "classifiers/model/vectorizer.py",
)
# It makes its attributes when they are asked for.
LEFT_OUT = ("classifiers/relevance/event_objects.py",)


def compiled_sources() -> list[str]:
    """The sources to compile, relative to the root."""
    found = sorted(path.relative_to(ROOT).as_posix() for pattern in MODULES for path in ROOT.glob(pattern))
    return [path for path in found if not path.endswith("__init__.py") and path not in LEFT_OUT]


def all_sources(sources: Sequence[str]) -> list[str]:
    """These sources and all modules of the classifiers that they import: compiled code relies on their types."""
    known, waiting = set(sources), list(sources)
    while waiting:
        for module in _imported(ROOT / waiting.pop()):
            path = f"{module.replace('.', '/')}.py"
            if path not in known and (ROOT / path).exists():
                known.add(path)
                waiting.append(path)
    return sorted(known)


def _imported(path: Path) -> Iterator[str]:
    """The modules of the classifiers that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("classifiers"):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def missing_part() -> str | None:
    """What is missing on this machine to compile, None if nothing is."""
    compiler = os.environ.get("CC", "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"there is no C compiler ({compiler})"
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "Python's headers are missing (on Debian or Ubuntu: apt-get install python3-dev)"
    return None if find_spec("mypyc") is not None else "mypy is not installed"


def compile_modules(sources: Sequence[str], output: Path, work: Path) -> None:
    """Compile sources, relative to the current folder, to `output`; `work` is for intermediate files."""
    from mypyc.build import mypycify  # noqa: PLC0415 - it may be missing
    from setuptools import Distribution  # noqa: PLC0415
    from setuptools.command.build_ext import build_ext  # noqa: PLC0415

    options = ["--config-file=", "--ignore-missing-imports", f"--cache-dir={work / 'cache'}"]
    said = io.StringIO()  # hints about slower ways to compile a line; of interest only if the compilation fails
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            extensions = mypycify(
                [*options, *sources],
                opt_level="2",
                debug_level="0",
                multi_file=True,
                group_name=GROUP,
                target_dir=str(work / "c"),
            )
    except BaseException:
        print(said.getvalue())
        raise
    command = build_ext(Distribution({"name": GROUP, "ext_modules": extensions}))
    command.build_lib, command.build_temp = str(output), str(work / "o")
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    command.run()


def main(argv: Sequence[str] | None = None) -> int:
    """Compile into the output folder, which is emptied first, and say what was done."""
    parser = argparse.ArgumentParser(description="Compile the modules that take most of the processor time.")
    parser.add_argument("--output", type=Path, default=native_modules.folder_of_environment())
    output: Path = parser.parse_args(argv).output.resolve()
    shutil.rmtree(output, ignore_errors=True)
    missing = missing_part()
    if missing is not None:
        print(f"nothing is compiled, {missing}: the program runs its sources, which takes more processor time")
        return 0
    os.chdir(ROOT)
    sources = compiled_sources()
    with tempfile.TemporaryDirectory(prefix="faultline-native-") as folder:
        built = Path(folder) / "built"
        compile_modules(sources, built, Path(folder))
        suffix = native_modules.suffix()
        files = {path.relative_to(built).as_posix() for path in built.rglob(f"*{suffix}")}
        manifest = {
            "suffix": suffix,
            "modules": {file.removesuffix(suffix).replace("/", "."): file for file in sorted(files)},
            "sources": {path: native_modules.digest(ROOT / path) for path in all_sources(sources)},
        }
        (built / native_modules.MANIFEST).write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
        shutil.copytree(built, output)
    print(f"compiled {len(sources)} modules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
