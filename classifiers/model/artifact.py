"""Saves and loads a model folder: arrays and JSON, never pickled code; a manifest that is checked before all else.

A folder holds

- `manifest.json`: format, name, version, time of creation, what the model was trained on and with, and of each file its
  size and SHA-256; closed by a SHA-256 over the manifest itself
- `weights.npz`: arrays `weights` (float16, features × classes) and `intercept` (float32, classes)
- `parameters.json`: feature names, heads, weights of lines and of beginnings, coefficients of the second stage,
  calibration, threshold of categories, P(retry outlook | cause)
- `manifest.hmac`: the keyed seal of the manifest (`keyed_seal`), if the model was saved or sealed with a key

Nothing is parsed before its digest agrees. With a key, the manifest is not parsed before its keyed seal agrees.
"""

import hashlib
import io
import json
import math
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from classifiers import masking
from classifiers.model import keyed_seal, vectorizer
from classifiers.model.beginnings import Beginnings
from classifiers.model.calibration import CONFIDENCE_FEATURES, Calibration
from classifiers.model.conditional_logit import ConditionalLogit
from classifiers.model.constants import AXES
from classifiers.model.fusion_input import GROUPS
from classifiers.model.label_fusion import FEATURES_BEFORE_VOTES, number_of_coefficients
from classifiers.model.line_weights import LineWeights
from classifiers.model.linear_model import Floats, Head, TextModel
from classifiers.regular_file import read_regular

FORMAT: Final = "faultline-model/5"
_FORMAT_PREFIX: Final = "faultline-model/"
MANIFEST: Final = "manifest.json"
WEIGHTS: Final = "weights.npz"
PARAMETERS: Final = "parameters.json"
KEYED_SEAL: Final = "manifest.hmac"
_MOST_BYTES: Final = 512 * 1024 * 1024
_MOST_MANIFEST_BYTES: Final = 1024 * 1024


# What reading a ZIP file may raise: RuntimeError is of encrypted ones.
_BAD_ARCHIVE: Final = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError)


class ModelError(ValueError):
    """A model folder is missing, foreign, truncated or altered; the text says which file and what was expected."""


class SealError(ModelError):
    """A model has no keyed seal, or one of another key or content."""


@dataclass(frozen=True)
class Model:
    """A trained model.

    Attributes:
        text: the first stage.
        lines: how much the words of each line count in the first stage.
        fusion: by axis the coefficients of the second stage.
        calibration: confidence of the side, and the threshold of abstention.
        category_threshold: the probability from which a category is reported.
        retry_by_cause: P(retry outlook | cause).
        beginnings: what tells the line or event that a verdict shows as the beginning.
        about: what the manifest says of it.
    """

    text: TextModel
    lines: LineWeights
    fusion: Mapping[str, ConditionalLogit]
    calibration: Calibration
    category_threshold: float
    retry_by_cause: Mapping[str, Mapping[str, float]]
    beginnings: Beginnings
    about: Mapping[str, Any]

    @property
    def label(self) -> str:
        """Name and version as verdicts carry them."""
        return f"{self.about['name']} {self.about['version']}"

    @cached_property
    def id(self) -> str:
        """`model-` and twelve hexadecimal digits, a digest of what the model computes with."""
        lines = (sorted(self.lines.words.items()), self.lines.intercept)
        outlooks = sorted((code, sorted(shares.items())) for code, shares in self.retry_by_cause.items())
        chosen_by = sorted(self.beginnings.weights.items())
        fitted = (self.calibration, self.category_threshold, sorted(self.fusion.items()), lines, outlooks, chosen_by)
        parameters = [self.text.names, *fitted, self.text.heads]
        content = self.text.weights.astype(np.float16).tobytes() + self.text.intercept.tobytes()
        return "model-" + _digest(repr(parameters).encode() + content)[:12]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _versions() -> dict[str, Any]:
    """What a model and this program must agree on."""
    return {
        "features": vectorizer.VERSION,
        "masking": masking.VERSION,
        "confidence_features": list(CONFIDENCE_FEATURES),
        "vote_groups": list(GROUPS),
    }


def manifest_digest(manifest: Mapping[str, Any]) -> str:
    """SHA-256 over the manifest without its seal."""
    body = {key: value for key, value in manifest.items() if key != "seal"}
    return _digest(json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode())


def save(model: Model, folder: Path, key: bytes | None = None) -> None:
    """Write a model folder, with a keyed seal if there is a key. A former one there is replaced in one step.

    Raises:
        OSError: the folder can't be written.
    """
    packed = io.BytesIO()
    np.savez(packed, weights=model.text.weights.astype(np.float16), intercept=model.text.intercept)
    parameters = {
        "names": list(model.text.names),
        "heads": [{"axis": head.axis, "classes": list(head.classes), "begin": head.begin} for head in model.text.heads],
        "lines": {"words": dict(model.lines.words), "intercept": model.lines.intercept},
        "beginnings": dict(model.beginnings.weights),
        "fusion": {axis: list(one.coefficients) for axis, one in model.fusion.items()},
        "calibration": {
            "weights": list(model.calibration.weights),
            "intercept": model.calibration.intercept,
            "threshold": model.calibration.threshold,
        },
        "category_threshold": model.category_threshold,
        "retry_by_cause": {code: dict(shares) for code, shares in model.retry_by_cause.items()},
    }
    contents = {WEIGHTS: packed.getvalue(), PARAMETERS: json.dumps(parameters, ensure_ascii=False).encode()}
    manifest: dict[str, Any] = {
        **model.about,
        "format": FORMAT,
        **_versions(),
        "files": {name: {"bytes": len(data), "sha256": _digest(data)} for name, data in contents.items()},
    }
    manifest["seal"] = manifest_digest(manifest)
    contents[MANIFEST] = (json.dumps(manifest, indent=1, ensure_ascii=False) + "\n").encode()
    if key is not None:
        contents[KEYED_SEAL] = _keyed_seal_line(contents[MANIFEST], key)
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, data in contents.items():
            (new / name).write_bytes(data)
        new.chmod(0o755)
        former = new.with_name(new.name + "-old")
        if folder.exists():
            os.replace(folder, former)  # noqa: PTH105 - rename over whatever is there
        os.replace(new, folder)  # noqa: PTH105
        shutil.rmtree(former, ignore_errors=True)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def seal(folder: Path, key: bytes) -> None:
    """Write the keyed seal of a model whose digests agree; a former seal is replaced.

    Raises:
        ModelError: there is no model, or it is foreign, truncated or altered.
        OSError: the folder can't be written.
    """
    load(folder)
    new = folder / f"{KEYED_SEAL}.new"
    new.write_bytes(_keyed_seal_line(_manifest_bytes(folder), key))
    new.replace(folder / KEYED_SEAL)


def holds_parts(folder: Path) -> bool:
    """Whether a folder holds one of the files of a model, whatever state they are in."""
    return any((folder / name).is_file() for name in (WEIGHTS, PARAMETERS))


def manifest_of(folder: Path, key: bytes | None = None) -> dict[str, Any]:
    """The manifest, checked.

    Args:
        folder: the model's folder.
        key: the key of the seal; None: the seal is not checked.

    Raises:
        SealError: there is a key, and the keyed seal is missing or does not agree.
        ModelError: there is no manifest, it is not one of ours, or it was altered.
    """
    path = folder / MANIFEST
    data = _manifest_bytes(folder)
    if key is not None:
        _check_keyed_seal(folder / KEYED_SEAL, data, key)
    try:
        manifest: dict[str, Any] = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: expected JSON: truncated or altered") from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT:
        if isinstance(found, str) and found.startswith(_FORMAT_PREFIX):
            raise ModelError(
                f"{path}: format {found!r}, expected {FORMAT!r}: trained by another version of this program: "
                "run faultline train"
            )
        raise ModelError(f"{path}: expected format {FORMAT!r}: not a model of this program")
    if manifest.get("seal") != manifest_digest(manifest):
        raise ModelError(f"{path}: its content does not match its seal: altered")
    for what, expected in _versions().items():
        if manifest.get(what) != expected:
            raise ModelError(
                f"{path}: trained by another version of this program (its {what} differ): run faultline train"
            )
    return manifest


def _checked(folder: Path, name: str, manifest: Mapping[str, Any]) -> bytes:
    path = folder / name
    files = manifest.get("files")
    listed = files.get(name) if isinstance(files, dict) else None
    if not isinstance(listed, dict):
        raise ModelError(f"{folder / MANIFEST}: it does not list {name}")
    try:
        data, size = read_regular(path, _MOST_BYTES)
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from error
    if size != listed.get("bytes") or size != len(data):
        raise ModelError(f"{path}: expected {listed.get('bytes')} bytes, got {size}: truncated or altered")
    if _digest(data) != listed.get("sha256"):
        raise ModelError(f"{path}: SHA-256 is not the manifest's: altered")
    return data


def _manifest_bytes(folder: Path) -> bytes:
    path = folder / MANIFEST
    try:
        data, size = read_regular(path, _MOST_MANIFEST_BYTES)
    except OSError as error:
        raise ModelError(f"{path}: no model there ({error.strerror or error})") from error
    if size > _MOST_MANIFEST_BYTES:
        raise ModelError(f"{path}: expected at most {_MOST_MANIFEST_BYTES} bytes, got {size}: not a model")
    return data


def _keyed_seal_line(manifest: bytes, key: bytes) -> bytes:
    return keyed_seal.seal_of(manifest, key).encode() + b"\n"


def _check_keyed_seal(path: Path, manifest: bytes, key: bytes) -> None:
    try:
        found = read_regular(path, _MOST_MANIFEST_BYTES)[0].decode("ascii")
    except FileNotFoundError:
        raise SealError(f"{path}: the model is not sealed with the key") from None
    except (OSError, ValueError) as error:
        raise SealError(f"{path}: expected a keyed seal ({type(error).__name__})") from error
    if not keyed_seal.is_seal_of(found, manifest, key):
        raise SealError(f"{path}: the seal is not of this model and this key")


def load(folder: Path, key: bytes | None = None) -> Model:
    """A model from its folder; with a key, its keyed seal has to agree.

    Raises:
        SealError: there is a key, and the keyed seal is missing or does not agree.
        ModelError: the model is missing, foreign, truncated or altered.
    """
    manifest = manifest_of(folder, key)
    parameters_data = _checked(folder, PARAMETERS, manifest)
    weights_data = _checked(folder, WEIGHTS, manifest)
    try:
        parameters = orjson.loads(parameters_data)
        _check_unpacked(weights_data)
        with np.load(io.BytesIO(weights_data), allow_pickle=False) as arrays:
            weights, intercept = _numbers(arrays["weights"]), _numbers(arrays["intercept"])
        heads = tuple(Head(head["axis"], tuple(head["classes"]), head["begin"]) for head in parameters["heads"])
        calibration, lines = parameters["calibration"], parameters["lines"]
        model = Model(
            text=TextModel(tuple(parameters["names"]), heads, weights, intercept),
            lines=LineWeights(
                {str(word): float(one) for word, one in lines["words"].items()}, float(lines["intercept"])
            ),
            fusion={axis: ConditionalLogit(tuple(one)) for axis, one in parameters["fusion"].items()},
            calibration=Calibration(tuple(calibration["weights"]), calibration["intercept"], calibration["threshold"]),
            category_threshold=float(parameters["category_threshold"]),
            retry_by_cause={code: dict(shares) for code, shares in parameters["retry_by_cause"].items()},
            beginnings=Beginnings({str(name): float(one) for name, one in parameters["beginnings"].items()}),
            about={key: value for key, value in manifest.items() if key not in {"files", "seal"}},
        )
    except (ValueError, KeyError, TypeError, AttributeError, MemoryError, *_BAD_ARCHIVE) as error:
        raise ModelError(
            f"{folder}: its files do not hold what a model needs ({type(error).__name__}: {error})"
        ) from error
    _check_shapes(model, folder)
    _check_values(model, folder)
    return model


def _check_unpacked(weights: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(weights)) as archive:
        size = sum(one.file_size for one in archive.infolist())
        kinds = {one.compress_type for one in archive.infolist()}
    if size > _MOST_BYTES:
        raise ValueError(f"{WEIGHTS} has {size} bytes unpacked, expected at most {_MOST_BYTES}")
    if not kinds <= {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:  # those of NumPy
        raise ValueError(f"{WEIGHTS} is compressed in another way")


def _numbers(array: Any) -> Floats:
    if array.dtype.kind != "f":
        raise ValueError(f"{WEIGHTS} has {array.dtype}, expected floats")
    found: Floats = array.astype(np.float32, copy=False)
    if not np.isfinite(found).all():
        raise ValueError(f"{WEIGHTS} has numbers that are not finite")
    return found


def _check_values(model: Model, folder: Path) -> None:
    """Check the values that are computed with, which otherwise fail at the first failure that is classified.

    Raises:
        ModelError: one is no finite number or no name, or classes have columns that do not exist.
    """
    calibration, lines = model.calibration, model.lines
    numbers: list[object] = [*calibration.weights, calibration.intercept, calibration.threshold]
    numbers += [number for one in model.fusion.values() for number in one.coefficients]
    numbers += [*lines.words.values(), lines.intercept, model.category_threshold, *model.beginnings.weights.values()]
    numbers += [share for shares in model.retry_by_cause.values() for share in shares.values()]
    heads, end = model.text.heads, 0
    names: list[object] = [*model.text.names, *(name for head in heads for name in (head.axis, *head.classes))]
    right = all(isinstance(one, str) for one in names)
    right = right and all(isinstance(one, int | float) and math.isfinite(one) for one in numbers)
    for head in heads:
        right, end = right and head.begin == end, end + len(head.classes)
    if not right:
        raise ModelError(f"{folder}: its files do not hold what a model needs (a number or a name)")


def _check_shapes(model: Model, folder: Path) -> None:
    text = model.text
    total = sum(len(head.classes) for head in text.heads)
    if len(model.calibration.weights) != len(CONFIDENCE_FEATURES):
        count = len(model.calibration.weights)
        raise ModelError(f"{folder}: {count} calibration weights, expected {len(CONFIDENCE_FEATURES)}")
    for axis in FEATURES_BEFORE_VOTES:
        expected = number_of_coefficients(axis)
        if axis not in model.fusion or len(model.fusion[axis].coefficients) != expected:
            raise ModelError(f"{folder}: expected {expected} coefficients for the {axis}")
    fits = text.weights.shape == (len(text.names), total) and text.intercept.shape == (total,)
    if not fits or set(text.classes) != set(AXES):
        raise ModelError(
            f"{folder}: arrays of {text.weights.shape} do not fit {len(text.names)} features, {total} classes"
        )
