"""What pages take from npm: the vendored files are those of the lock file, each package with its licence."""

import gzip
import json
import re
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from service.web.pages.templating import SCRIPTS, STYLES

ROOT = Path(__file__).parents[2]
FRONTEND = ROOT / "deploy" / "frontend"
STATIC = ROOT / "service" / "web" / "static"
VENDOR = STATIC / "vendor"
MOST_BYTES = 100_000  # gzipped: all styles and scripts together; pages may weigh 400 KB


def manifest() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VENDOR / "manifest.json").read_text(encoding="utf-8"))
    return found


def locked() -> dict[str, Any]:
    packages: dict[str, Any] = json.loads((FRONTEND / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    return packages


def test_each_vendored_file_has_the_digest_of_the_manifest() -> None:
    named = {name: digest for one in manifest() for name, digest in one["files"].items()}
    present = {path.name for path in VENDOR.iterdir()} - {"manifest.json"}
    assert present == set(named), "make vendor"
    assert {name: sha256((VENDOR / name).read_bytes()).hexdigest() for name in named} == named


def test_versions_and_digests_are_those_of_the_lock_file() -> None:
    wanted = json.loads((FRONTEND / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert {one["name"]: one["version"] for one in manifest()} == wanted
    for one in manifest():
        entry = locked()[f"node_modules/{one['name']}"]
        assert (entry["version"], entry["integrity"]) == (one["version"], one["integrity"])


def test_every_package_brings_its_licence() -> None:
    for one in manifest():
        [licence] = [name for name in one["files"] if name.endswith(".LICENSE.txt")]
        text = (VENDOR / licence).read_text(encoding="utf-8")
        assert len(text) > 400
        assert one["license"] in {"MIT", "0BSD"}
    components = run_path(str(ROOT / "deploy" / "build_release.py"))["frontend_components"]()
    assert {component["name"] for component in components} == {one["name"] for one in manifest()}
    assert files("service.web").joinpath("static/vendor/bootstrap.LICENSE.txt").is_file()


@pytest.mark.parametrize("name", ["package.json", "package-lock.json", ".npmrc", "vendor.mjs", "kit.scss"])
def test_no_file_names_a_registry(name: str) -> None:
    text = (FRONTEND / name).read_text(encoding="utf-8")
    assert '"resolved"' not in text
    assert not re.search(r"registry\.|npmjs", text)


def test_styles_load_nothing_from_elsewhere() -> None:
    for path in (*STATIC.glob("*.css"), *VENDOR.glob("*.css")):
        addresses = re.findall(r"url\(([^)]*)\)", path.read_text(encoding="utf-8"))
        assert all(address.strip("\"'").startswith("../") for address in addresses), path.name
        assert "@import" not in path.read_text(encoding="utf-8")


def test_styles_and_scripts_are_light() -> None:
    names = {*STYLES, *SCRIPTS, "vendor/uplot.min.css", "vendor/uplot.min.js", "charts.js"}
    sizes = {name: len(gzip.compress((STATIC / name).read_bytes(), 6)) for name in names}
    assert sum(sizes.values()) < MOST_BYTES, sizes
