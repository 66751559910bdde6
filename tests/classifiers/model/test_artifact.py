import io
import json
import os
import zipfile
from dataclasses import fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from classifiers.model import artifact
from classifiers.model.artifact import Model, ModelError, SealError
from classifiers.model.beginnings import Beginnings
from classifiers.model.conditional_logit import ConditionalLogit
from classifiers.model.line_weights import LineWeights
from classifiers.model.site import layer as layers
from classifiers.model.site.layer import SiteLayerError


@pytest.fixture
def folder(model: Model, tmp_path: Path) -> Path:
    artifact.save(model, tmp_path / "model")
    return tmp_path / "model"


def test_a_saved_model_is_loaded_unchanged(model: Model, folder: Path) -> None:
    again = artifact.load(folder)
    assert again.text.names == model.text.names
    assert again.text.heads == model.text.heads
    assert np.array_equal(again.text.weights, model.text.weights)
    assert again.fusion == model.fusion
    assert again.calibration == model.calibration
    assert again.retry_by_cause == model.retry_by_cause
    assert again.beginnings == model.beginnings
    assert again.label == model.label


@pytest.mark.parametrize("name", [one.name for one in fields(Model)])
def test_the_id_changes_with_all_that_a_model_computes_with(model: Model, folder: Path, name: str) -> None:
    values: dict[str, Any] = {
        "text": replace(model.text, intercept=model.text.intercept + 1),
        "lines": LineWeights(model.lines.words, model.lines.intercept + 1),
        "fusion": {axis: ConditionalLogit((*one.coefficients[1:], 0.5)) for axis, one in model.fusion.items()},
        "calibration": replace(model.calibration, threshold=0.123),
        "category_threshold": 0.123,
        "retry_by_cause": {"USER.1": {"futile": 1.0}},
        "beginnings": Beginnings({"first log": 9.0}),
        "about": {**model.about, "version": "another"},
    }
    other = replace(model, **{name: values[name]})
    assert (other.id == artifact.load(folder).id) == (name == "about")


def test_saving_again_replaces_the_whole_folder(model: Model, folder: Path) -> None:
    (folder / "left.over").write_text("x")
    artifact.save(model, folder)
    assert sorted(one.name for one in folder.iterdir()) == ["manifest.json", "parameters.json", "weights.npz"]
    assert [one.name for one in folder.parent.iterdir()] == ["model"]


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no model there"):
        artifact.load(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["weights.npz", "parameters.json"])
def test_an_altered_or_truncated_file_is_refused(folder: Path, name: str) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(bytes([data[0] ^ 1]) + data[1:])
    with pytest.raises(ModelError, match=rf"{name}: SHA-256.*altered"):
        artifact.load(folder)
    (folder / name).write_bytes(data[:-1])
    with pytest.raises(ModelError, match=rf"{name}: expected \d+ bytes"):
        artifact.load(folder)
    (folder / name).unlink()
    with pytest.raises(ModelError, match=name):
        artifact.load(folder)


def test_an_altered_manifest_is_refused(folder: Path) -> None:
    file = folder / "manifest.json"
    file.write_text(file.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(ModelError, match="seal"):
        artifact.load(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "expected JSON"), ('{"format": "other"}', "not a model of this program"), ("[]", "not a model")],
)
def test_a_foreign_manifest_is_refused(folder: Path, text: str, message: str) -> None:
    (folder / "manifest.json").write_text(text)
    with pytest.raises(ModelError, match=message):
        artifact.load(folder)


@pytest.mark.parametrize(("key", "value"), [("features", 0), ("masking", 0), ("confidence_features", ["odds"])])
def test_a_model_of_another_version_asks_for_training(folder: Path, key: str, value: object) -> None:
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest[key] = value
    manifest["seal"] = artifact.manifest_digest(manifest)
    file.write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match=f"{key} differ.*run faultline train"):
        artifact.load(folder)


def test_a_folder_of_the_former_format_asks_for_training(folder: Path) -> None:
    file = folder / "manifest.json"
    file.write_text(file.read_text().replace(artifact.FORMAT, "faultline-model/2"))
    with pytest.raises(
        ModelError, match=r"format 'faultline-model/2', expected 'faultline-model/5'.*run faultline train"
    ):
        artifact.load(folder)


def test_a_model_without_coefficients_of_an_axis_is_refused(model: Model, tmp_path: Path) -> None:
    fusion = {axis: one for axis, one in model.fusion.items() if axis != "cause"}
    artifact.save(replace(model, fusion=fusion), tmp_path / "model")
    with pytest.raises(ModelError, match="coefficients for the cause"):
        artifact.load(tmp_path / "model")


KEY, OTHER = b"k" * 32, b"o" * 32


def test_a_model_saved_with_a_key_is_loaded_with_it_and_without(model: Model, tmp_path: Path) -> None:
    artifact.save(model, tmp_path / "model", KEY)
    assert artifact.load(tmp_path / "model", KEY).label == model.label
    assert artifact.load(tmp_path / "model").label == model.label
    with pytest.raises(SealError, match="not of this model and this key"):
        artifact.load(tmp_path / "model", OTHER)


def test_an_unsealed_model_is_refused_with_a_key_until_it_is_sealed(folder: Path) -> None:
    with pytest.raises(SealError, match="not sealed"):
        artifact.load(folder, KEY)
    artifact.seal(folder, KEY)
    artifact.load(folder, KEY)
    artifact.seal(folder, OTHER)
    artifact.load(folder, OTHER)


def test_a_replaced_model_with_right_digests_is_refused_with_a_key(model: Model, tmp_path: Path) -> None:
    artifact.save(model, tmp_path / "model", KEY)
    former = (tmp_path / "model" / artifact.KEYED_SEAL).read_bytes()
    artifact.save(replace(model, about={**model.about, "version": "99"}), tmp_path / "model")
    (tmp_path / "model" / artifact.KEYED_SEAL).write_bytes(former)
    artifact.load(tmp_path / "model")
    with pytest.raises(SealError):
        artifact.load(tmp_path / "model", KEY)
    (tmp_path / "model" / artifact.KEYED_SEAL).write_bytes(b"\xff\xfe")
    with pytest.raises(SealError):
        artifact.load(tmp_path / "model", KEY)


def test_an_altered_model_is_not_sealed(folder: Path) -> None:
    (folder / "weights.npz").write_bytes(b"x")
    with pytest.raises(ModelError, match="weights"):
        artifact.seal(folder, KEY)
    assert not (folder / artifact.KEYED_SEAL).exists()


# A model folder of a stranger, whose digests agree: it fills no memory and ends in one clear error.


def reseal(folder: Path, **changes: Any) -> None:
    """Write the manifest again, with the digests of the files as they are."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for name, listed in manifest["files"].items():
        data = (folder / name).read_bytes()
        listed.update(bytes=len(data), sha256=sha256(data).hexdigest())
    manifest |= changes
    (folder / "manifest.json").write_text(json.dumps(manifest | {"seal": artifact.manifest_digest(manifest)}))


def header(shape: tuple[int, ...]) -> bytes:
    """The begin of a file of NumPy that announces an array of some shape."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f2", "fortran_order": False, "shape": shape})
    return out.getvalue()


BOMBS = {
    "more than memory": header((10**7, 10**7)),
    "zeros": header((2**20,)) + bytes(2**21),
    "an object": b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(128)
    + b"\x80\x04.",
}


@pytest.mark.parametrize("name", BOMBS)
def test_an_array_that_is_too_large_or_no_array_of_numbers_is_refused(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(artifact, "_MOST_BYTES", 2**20)
    artifact.save(model, tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "model" / "weights.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for array in ("weights", "intercept"):
            archive.writestr(f"{array}.npy", BOMBS[name])
    reseal(tmp_path / "model")
    with pytest.raises(ModelError, match="its files do not hold what a model needs"):
        artifact.load(tmp_path / "model")


@pytest.mark.parametrize("files", [None, [], {}, {"weights.npz": None}, {"parameters.json": 1}])
def test_a_manifest_without_its_files_is_refused(model: Model, tmp_path: Path, files: Any) -> None:
    artifact.save(model, tmp_path / "model")
    reseal(tmp_path / "model", files=files)
    with pytest.raises(ModelError):
        artifact.load(tmp_path / "model")


@pytest.mark.parametrize("content", [b"[]", b"{}", b"1", b'{"names": 1}', b'{"lines": {"words": []}}'])
def test_parameters_of_another_form_are_refused(model: Model, tmp_path: Path, content: bytes) -> None:
    artifact.save(model, tmp_path / "model")
    (tmp_path / "model" / "parameters.json").write_bytes(content)
    reseal(tmp_path / "model")
    with pytest.raises(ModelError):
        artifact.load(tmp_path / "model")


def test_parameters_that_can_not_be_computed_with_are_refused(folder: Path) -> None:
    path = folder / "parameters.json"
    parameters = json.loads(path.read_text(encoding="utf-8"))
    head, axis = parameters["heads"][0], next(iter(parameters["fusion"]))
    text = ["x" for _ in parameters["calibration"]["weights"]]
    wrong: tuple[dict[str, Any], ...] = (
        {"names": [1] * len(parameters["names"])},
        {"heads": [{**head, "begin": 7}, *parameters["heads"][1:]]},
        {"heads": [{**head, "begin": "0"}, *parameters["heads"][1:]]},
        {"heads": [{**head, "classes": [1] * len(head["classes"])}, *parameters["heads"][1:]]},
        {"calibration": {**parameters["calibration"], "weights": text}},
        {"calibration": {**parameters["calibration"], "threshold": "0.5"}},
        {"fusion": {**parameters["fusion"], axis: ["1"] * len(parameters["fusion"][axis])}},
        {"retry_by_cause": {"USER.1": {"futile": "1"}}},
        {"retry_by_cause": []},
        {"retry_by_cause": {"USER.1": 1}},
    )
    for changes in wrong:
        path.write_text(json.dumps(parameters | changes))
        reseal(folder)
        with pytest.raises(ModelError, match="do not hold what a model needs"):
            artifact.load(folder)


@pytest.mark.parametrize("number", [np.float16("nan"), np.float16("inf"), 1j, "1"], ids=str)
def test_weights_that_are_no_finite_floats_are_refused(model: Model, folder: Path, number: Any) -> None:
    weights = np.full(model.text.weights.shape, number)
    np.savez(folder / "weights.npz", weights=weights, intercept=model.text.intercept)
    reseal(folder)
    with pytest.raises(ModelError, match="do not hold what a model needs"):
        artifact.load(folder)


@pytest.mark.parametrize(("method", "flag"), [(zipfile.ZIP_BZIP2, 0), (zipfile.ZIP_LZMA, 0), (99, 0), (0, 1)])
def test_an_archive_that_numpy_does_not_write_is_refused(folder: Path, method: int, flag: int) -> None:
    path = folder / "weights.npz"
    data = bytearray(path.read_bytes())
    at = data.find(b"PK\x01\x02")
    while at >= 0:  # each file of the central directory
        data[at + 8] |= flag  # encrypted
        data[at + 10] = method
        at = data.find(b"PK\x01\x02", at + 1)
    path.write_bytes(data)
    reseal(folder)
    with pytest.raises(ModelError, match="do not hold what a model needs"):
        artifact.load(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["manifest.json", "manifest.hmac", "parameters.json", "weights.npz"])
@pytest.mark.parametrize("kind", ["/dev/zero", "a pipe", "endless"])
def test_a_file_without_an_end_fills_no_memory(model: Model, tmp_path: Path, name: str, kind: str) -> None:
    folder = tmp_path / "model"
    artifact.save(model, folder, key=b"k" * 32)
    (folder / name).unlink()
    if kind == "a pipe":
        os.mkfifo(folder / name)
    elif kind == "endless":
        with (folder / name).open("wb") as file:
            file.truncate(1 << 40)  # a hole takes no space
    else:
        (folder / name).symlink_to(kind)
    with pytest.raises(ModelError):
        artifact.load(folder, b"k" * 32)


def test_a_manifest_that_nests_without_end_is_refused(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"a":' * 100_000)
    with pytest.raises(ModelError, match="expected JSON"):
        artifact.load(folder)


def test_a_layer_that_can_not_be_computed_with_is_refused() -> None:
    support = {"case": "a", "features": {"w:x": 1.0}, "weights": {"side": {"user": 0.5}}}
    entry = {"fingerprints": ["f"], "lines": ["l"], "labels": {"side": "user"}, "people": 1, "cases": ["a"]}
    body: dict[str, Any] = {
        "format": layers.FORMAT,
        "about": {},
        "corrections": {"bias": {}, "support": [support]},
        "memory": {"confidence": 0.5, "entries": [entry]},
        "calibration": {"slope": 1.0, "intercept": 0.0, "cases": 0},
    }
    layers.parse(json.dumps(body))
    corrections, nan = body["corrections"], float("nan")
    wrong: tuple[dict[str, Any], ...] = (
        {"corrections": {**corrections, "support": [{**support, "features": {"w:x": "1"}}]}},
        {"corrections": {**corrections, "support": [{**support, "features": []}]}},
        {"corrections": {**corrections, "support": [{**support, "weights": {"side": {"user": nan}}}]}},
        {"corrections": {**corrections, "support": [{**support, "weights": {"side": []}}]}},
        {"corrections": {**corrections, "support": [{**support, "entries": [1]}]}},
        {"corrections": {**corrections, "changed_confidence": "inf"}},
        {"corrections": {**corrections, "kernel": {"entries": "1"}}},
        {"memory": {"confidence": "nan", "entries": []}},
        {"memory": {"confidence": 0.5, "entries": [{**entry, "labels": {"side": 1}}]}},
        {"memory": {"confidence": 0.5, "entries": [{**entry, "labels": []}]}},
        {"memory": {"confidence": 0.5, "entries": [{**entry, "lines": [1]}]}},
        {"calibration": {"slope": "1", "intercept": 0.0, "cases": 1}},
        {"calibration": {"slope": 1e999, "intercept": 0.0, "cases": 1}},
        {"about": []},
    )
    for changes in wrong:
        with pytest.raises(SiteLayerError):
            layers.parse(json.dumps(body | changes))
    with pytest.raises(SiteLayerError):
        layers.parse("[" * 100_000)
