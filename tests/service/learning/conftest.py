"""A small trained model, and one process of the service that uses it."""

from pathlib import Path

import pytest

from classifiers.data.labelled_cases import LabelledCase
from classifiers.model import artifact
from service.db.session import Store
from tests.classifiers.conftest import KINDS, labelled, small_model
from tests.service.frozen_clock import FrozenClock
from tests.service.learning.world import World


@pytest.fixture(scope="package")
def cases() -> list[LabelledCase]:
    return [labelled(kind, number) for kind in KINDS for number in range(4)]


@pytest.fixture(scope="package")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("model") / "model"
    artifact.save(small_model(), where)
    return where


@pytest.fixture
def world(store: Store, clock: FrozenClock, model: Path, cases: list[LabelledCase]) -> World:
    return World(store, clock, model, cases)
