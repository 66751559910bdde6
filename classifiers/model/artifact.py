"""Saves and loads a model folder: arrays and JSON, never pickled code; a passport that is checked before all else.

A folder holds `manifest.json` (format, name, version, when, what it was trained on and with, and of each file its size
and SHA-256, closed by a SHA-256 over the manifest itself), `weights.npz` (float32 arrays `weights` and `intercept`) and
`parameters.json` (feature names, heads, calibration, P(retry | cause)). Nothing is parsed before its digest agrees.
"""

import hashlib
import io
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from classifiers import masking
from classifiers.model import vectorizer
from classifiers.model.label_fusion import SIGNALS, Calibration
from classifiers.model.linear_model import AXES, Floats, Head, TextModel

FORMAT: Final = "faultline-model/1"
MANIFEST: Final = "manifest.json"
WEIGHTS: Final = "weights.npz"
PARAMETERS: Final = "parameters.json"
_MOST_BYTES: Final = 512 * 1024 * 1024


class ModelError(ValueError):
    """A model folder is missing, foreign, truncated or altered; the text says which file and what was expected."""


@dataclass(frozen=True)
class Model:
    """All that a trained model is. `retry_given` is P(retry outlook | cause); `about` the manifest's words on it."""

    text: TextModel
    calibration: Calibration
    retry_given: Mapping[str, Mapping[str, float]]
    about: Mapping[str, Any]

    @property
    def label(self) -> str:
        """Name and version as verdicts carry them."""
        return f"{self.about['name']} {self.about['version']}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def seal_of(manifest: Mapping[str, Any]) -> str:
    """SHA-256 over the manifest without its seal."""
    body = {key: value for key, value in manifest.items() if key != "seal"}
    return _digest(json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode())


def save(model: Model, folder: Path) -> None:
    """Write a model folder; a former one there is replaced as a whole, at once.

    Raises:
        OSError: the folder can't be written.
    """
    packed = io.BytesIO()
    np.savez(packed, weights=model.text.weights, intercept=model.text.intercept)
    parameters = {
        "names": list(model.text.names),
        "heads": [{"axis": head.axis, "classes": list(head.classes), "begin": head.begin} for head in model.text.heads],
        "calibration": {
            "weights": list(model.calibration.weights),
            "intercept": model.calibration.intercept,
            "threshold": model.calibration.threshold,
        },
        "retry_given": {code: dict(shares) for code, shares in model.retry_given.items()},
    }
    contents = {WEIGHTS: packed.getvalue(), PARAMETERS: json.dumps(parameters, ensure_ascii=False).encode()}
    manifest: dict[str, Any] = {
        **model.about,
        "format": FORMAT,
        "features": vectorizer.VERSION,
        "masking": masking.VERSION,
        "signals": list(SIGNALS),
        "files": {name: {"bytes": len(data), "sha256": _digest(data)} for name, data in contents.items()},
    }
    manifest["seal"] = seal_of(manifest)
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, data in contents.items():
            (making / name).write_bytes(data)
        (making / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        making.chmod(0o755)
        former = making.with_name(making.name + "-old")
        if folder.exists():
            os.replace(folder, former)  # noqa: PTH105 - rename over whatever is there
        os.replace(making, folder)  # noqa: PTH105
        shutil.rmtree(former, ignore_errors=True)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest, checked.

    Raises:
        ModelError: there is none, it is not one of ours, or it was altered.
    """
    path = folder / MANIFEST
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: no model there ({error.strerror or error})") from error
    try:
        manifest = json.loads(data)
    except ValueError as error:
        raise ModelError(f"{path}: expected JSON: truncated or altered") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelError(f"{path}: expected format {FORMAT!r}: not a model of this program")
    if manifest.get("seal") != seal_of(manifest):
        raise ModelError(f"{path}: its content does not agree with its seal: altered")
    mine = {"features": vectorizer.VERSION, "masking": masking.VERSION, "signals": list(SIGNALS)}
    for what, expected in mine.items():
        if manifest.get(what) != expected:
            raise ModelError(
                f"{path}: trained by another version of this program (its {what} differ): run faultline train"
            )
    return manifest


def _checked(folder: Path, name: str, manifest: Mapping[str, Any]) -> bytes:
    path = folder / name
    told = manifest["files"].get(name)
    if told is None:
        raise ModelError(f"{folder / MANIFEST}: it does not list {name}")
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= _MOST_BYTES else b""
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from error
    if size != told["bytes"]:
        raise ModelError(f"{path}: expected {told['bytes']} bytes, got {size}: truncated or altered")
    if _digest(data) != told["sha256"]:
        raise ModelError(f"{path}: SHA-256 is not the manifest's: altered")
    return data


def load(folder: Path) -> Model:
    """A model from its folder.

    Raises:
        ModelError: it is missing, foreign, truncated or altered.
    """
    manifest = manifest_of(folder)
    parameters_data = _checked(folder, PARAMETERS, manifest)
    weights_data = _checked(folder, WEIGHTS, manifest)
    try:
        parameters = json.loads(parameters_data)
        with np.load(io.BytesIO(weights_data), allow_pickle=False) as arrays:
            weights: Floats = arrays["weights"].astype(np.float32, copy=False)
            intercept: Floats = arrays["intercept"].astype(np.float32, copy=False)
        heads = tuple(Head(one["axis"], tuple(one["classes"]), one["begin"]) for one in parameters["heads"])
        calibration = parameters["calibration"]
        made = Model(
            text=TextModel(tuple(parameters["names"]), heads, weights, intercept),
            calibration=Calibration(tuple(calibration["weights"]), calibration["intercept"], calibration["threshold"]),
            retry_given=parameters["retry_given"],
            about={key: value for key, value in manifest.items() if key not in {"files", "seal"}},
        )
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise ModelError(
            f"{folder}: its files do not hold what a model needs ({type(error).__name__}: {error})"
        ) from error
    total = sum(len(head.classes) for head in heads)
    if len(made.calibration.weights) != len(SIGNALS):
        raise ModelError(f"{folder}: {len(made.calibration.weights)} calibration weights, expected {len(SIGNALS)}")
    if (
        weights.shape != (len(made.text.names), total)
        or intercept.shape != (total,)
        or {h.axis for h in heads} != set(AXES)
    ):
        raise ModelError(
            f"{folder}: arrays of {weights.shape} do not fit {len(made.text.names)} features, {total} classes"
        )
    return made
