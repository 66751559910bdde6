"""Builds a release: the sdist, the wheel with a trained model inside, and the SBOM (CycloneDX JSON).

usage: python deploy/build_release.py --model FOLDER [--output dist] [--no-isolation]

The files are copied to a temporary folder first, so that neither leftovers of earlier builds nor the model ever lie
in the checkout. The wheel is built from the sdist: what the sdist lacks, the wheel lacks too.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = Path("deploy") / "requirements.lock"
FILES = (
    "pyproject.toml",
    "MANIFEST.in",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "SECURITY.md",
    "requirements.lock",
)
VENDORED = Path("service") / "web" / "static" / "vendor" / "manifest.json"
PACKAGES = ("classifiers", "service", "migrations")
# Where `service.settings` looks for the model that a wheel carries.
PACKAGED_MODEL = Path("classifiers") / "trained_model"
MODEL_FILES = ("*.json", "*.npz")


def stage(folder: Path, model: Path) -> None:
    """Copy what a release is built from to `folder`.

    Raises:
        SystemExit: there is no trained model in `model`.
    """
    if not (model / "manifest.json").exists():
        raise SystemExit(f"build_release: no trained model in {model}; run `make install` first")
    for name in FILES:
        shutil.copy2(ROOT / name, folder / name)
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", PACKAGED_MODEL.name)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    target = folder / PACKAGED_MODEL
    target.mkdir()
    for file in sorted({file for pattern in MODEL_FILES for file in model.glob(pattern)}):
        shutil.copy2(file, target / file.name)


def build(staged: Path, output: Path, *, isolated: bool) -> list[Path]:
    """The sdist and the wheel of the staged files, in `output`."""
    command = [sys.executable, "-m", "build", "--outdir", str(output), str(staged)]
    command += [] if isolated else ["--no-isolation"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"build_release: the build failed\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return sorted(output.glob("*.whl")) + sorted(output.glob("*.tar.gz"))


def write_sbom(output: Path) -> Path:
    """The CycloneDX document of everything that the lock of the container image names, with its hashes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    path = output / f"{project['name']}-{project['version']}.cdx.json"
    command = [
        sys.executable, "-m", "cyclonedx_py", "requirements", str(ROOT / LOCK),
        "--pyproject", str(ROOT / "pyproject.toml"),
        "--mc-type", "application",
        "--output-format", "JSON",
        "--output-reproducible",
        "--output-file", str(path),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"build_release: the SBOM failed\n{done.stderr[-4000:]}")
    document = json.loads(path.read_text(encoding="utf-8"))
    document["components"] += frontend_components()
    for component in document["components"]:
        component.pop("description", None)  # the line of the lock file, which the hashes below it repeat
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


def frontend_components() -> list[dict[str, object]]:
    """What the wheel carries from npm, with the licence and digest of each package."""
    manifest = json.loads((ROOT / VENDORED).read_text(encoding="utf-8"))
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:npm/{one['name']}@{one['version']}",
            "name": one["name"],
            "version": one["version"],
            "purl": f"pkg:npm/{one['name']}@{one['version']}",
            "licenses": [{"license": {"id": one["license"]}}],
            "hashes": [{"alg": "SHA-512", "content": b64decode(one["integrity"].removeprefix("sha512-")).hex()}],
        }
        for one in manifest
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Build into an output folder and list what was built with its size."""
    parser = argparse.ArgumentParser(description="Build the wheel, the sdist and the SBOM.")
    parser.add_argument("--model", type=Path, required=True, help="folder of the trained model that the wheel carries")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder to write to; emptied first")
    parser.add_argument("--no-isolation", action="store_true", help="build with the setuptools of this environment")
    args = parser.parse_args(argv)
    output: Path = args.output.resolve()
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="faultline-release-") as folder:
        stage(Path(folder), args.model)
        built = build(Path(folder), output, isolated=not args.no_isolation)
    built.append(write_sbom(output))
    for file in built:
        print(f"{file.stat().st_size / 1e6:6.1f} MB  {file.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
