from collections.abc import Sequence
from functools import cache

import pytest

from classifiers import signatures
from classifiers.composition import training_cases
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import LabelledCase
from classifiers.diagnoser import Diagnoser
from classifiers.extraction.extractor import Extractor
from classifiers.model import training
from classifiers.model.artifact import Model
from classifiers.signatures import Catalogue
from tests.classifiers.packaged_catalogue import EXTRACTOR
from tests.once_per_run import once_per_run

# One-line failures of a few kinds: enough to fit a model that knows these and nothing else.
KINDS: dict[str, tuple[str, str, str, str, Sequence[str]]] = {
    "oom": (
        "USER.1",
        "DL.1",
        "D.1.2",
        "futile",
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n} MiB",
            "RuntimeError: CUDA out of memory {n}",
        ),
    ),
    "key": ("USER.1", "GC.3", "none", "futile", ("KeyError: 'lr_{n}'", "KeyError: 'warmup_{n}' in config")),
    "path": (
        "USER.1",
        "EE.1",
        "none",
        "futile",
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/{n}.idx'", "FileNotFoundError: no shard {n}"),
    ),
    "ecc": (
        "HW.GPU.1",
        "none",
        "D.1.3",
        "helps_elsewhere",
        (
            "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered {n}",
            "kernel: NVRM: Xid (PCI:0000:0f:00): 48, DBE {n}",
        ),
    ),
    "node": (
        "HW.NODE.1",
        "none",
        "none",
        "helps_elsewhere",
        ("srun: error: Node failure on gpu{n}", "slurmstepd: error: STEP {n}.0 CANCELLED DUE TO NODE FAILURE"),
    ),
    "mount": (
        "SYS.1",
        "none",
        "none",
        "after_repair",
        (
            "FailedMount: MountVolume.SetUp failed for volume pvc-{n}",
            "Unable to attach or mount volumes: unmounted {n}",
        ),
    ),
    "service": (
        "SYS.5",
        "none",
        "none",
        "helps",
        ("503 Service Unavailable from the artefact store {n}", "srun: error: Socket timed out on send/recv {n}"),
    ),
}


def labelled(kind: str, number: int, *, origin: str = "composed") -> LabelledCase:
    cause, category, symptom, retry, lines = KINDS[kind]
    line = lines[number % len(lines)].replace("{n}", str(100 + number))
    side = {"U": "user", "H": "hardware", "S": "system"}[cause[0]]
    return labelled_cases.parse(
        {
            "id": f"{origin}-{kind}-{number}",
            "group": kind,
            "kind": f"{kind}-{number % 5}",
            "event": {
                "status": "failed",
                "gpus": 8,
                "nodes": ["n1", "n2"],
                "logs": [{"rank": 0, "tail": f"step {number} loss 2.1\n{line}\n"}],
            },
            "labels": {
                "side": side,
                "cause": cause,
                "category": category,
                "symptom": symptom,
                "retry": retry,
                "root_rank": 0,
                "root_line": line,
            },
            "provenance": {"origin": origin},
        },
        "test",
    )


@pytest.fixture(scope="session")
def extractor() -> Extractor:
    return EXTRACTOR


@pytest.fixture(scope="session")
def captured_cases() -> list[LabelledCase]:
    return training_cases.captured()


@pytest.fixture(scope="session")
def composed_cases() -> list[LabelledCase]:
    return training_cases.composed()


@pytest.fixture(scope="session")
def packaged_cases(captured_cases: list[LabelledCase], composed_cases: list[LabelledCase]) -> list[LabelledCase]:
    return [*captured_cases, *training_cases.written_runs(), *composed_cases, *training_cases.long_runs()]


@pytest.fixture(scope="session")
def cases() -> list[LabelledCase]:
    return _cases()


def few_signatures() -> Catalogue:
    """One in twenty of the packaged: their examples are training cases, which take most of the time of a fit."""
    entries = signatures.packaged().entries[::20]
    return Catalogue(entries, {entry.id: entry for entry in entries})


@cache
def small_model() -> Model:
    """A model of the kinds above, trained once per run, in four seconds."""
    return once_per_run("small-model", lambda: training.train(_cases())[0])


def _cases() -> list[LabelledCase]:
    return [labelled(kind, number) for kind in KINDS for number in range(10)]


@pytest.fixture(scope="session")
def model() -> Model:
    return small_model()


@pytest.fixture(scope="session")
def diagnoser(model: Model) -> Diagnoser:
    return Diagnoser(model, signatures.packaged())
