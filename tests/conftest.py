"""What every test may ask for."""

import gc
import ssl
import warnings
from collections.abc import Iterator

import pytest
from argon2 import PasswordHasher
from hypothesis import HealthCheck, settings

from classifiers import diagnoser, garbage_collection
from classifiers.model import label_fusion, packaged_scores, samples
from service import native_modules
from service.db import session
from service.people import passwords
from tests import cheap_diagnosers, cheap_engines

# The sources: some tests replace parts of them. What is compiled has tests of its own, in processes of their own.
native_modules.forbid()
# A busy machine is no failure: no limit depends on how long an example takes.
settings.register_profile("faultline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("faultline")

# Imports and tests make few cycles of many objects: searching for them as often as usual costs a third of collection.
gc.set_threshold(50_000, 20, 20)

MOST_OF_A_NAME = 300  # characters of a parameter

pytest_plugins = ["tests.labs.fixtures"]


def pytest_configure(config: pytest.Config) -> None:
    # kafka-python reads its protocol's schemas that way when it is imported.
    config.addinivalue_line("filterwarnings", "ignore:(read|open)_text is deprecated:DeprecationWarning")
    # It leaves sockets that could not connect to the garbage collector: tests that kill brokers see them go.
    unconnected = r"unclosed <socket.socket fd=\d+, family=2, type=1, proto=6, laddr=.'0.0.0.0'"
    config.addinivalue_line("filterwarnings", f"ignore:{unconnected}:ResourceWarning")
    warnings.filterwarnings("ignore", message=unconnected, category=ResourceWarning)  # after the last test too


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long text by its argument: names of tests are sent between processes, and some texts have megabytes."""
    return argname if isinstance(val, str | bytes) and len(val) > MOST_OF_A_NAME else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A worker runs whole files, and all files of one group: tests that can not run at the same time share a group.

    Groups of several files share a cluster or a broker, and wait for most of their time. They begin first, then files
    with tests that start servers or are slow: at the end, short files keep all workers busy.
    """
    long = {item.path for item in items if item.get_closest_marker("lab") or item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.get_closest_marker("xdist_group") is None, item.path not in long))
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))  # its path


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage among what is loaded: it stays, and each worker would search a second of processor time."""
    with garbage_collection.paused():
        yield
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def cheap_password_hashes() -> Iterator[None]:
    """Hash passwords of this process in a millisecond instead of 0.3 s of processor time."""
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", lambda: cheap)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_authorities() -> Iterator[None]:
    """Load no authorities of this machine: that takes 0.02 s for each client, and none of this process leaves it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "load_default_certs", lambda *_: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def engines() -> Iterator[None]:
    """Make the engines of this process cheap."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "connect", cheap_engines.connect)
        yield


@pytest.fixture(scope="session", autouse=True)
def diagnosers() -> Iterator[None]:
    """Make the diagnosers of this process cheap."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (packaged_scores, samples):
            patch.setattr(module, "Scanner", cheap_diagnosers.scanner_of)
        patch.setattr(label_fusion, "VoteMatrix", cheap_diagnosers.votes_of)
        patch.setattr(diagnoser, "rules_version", cheap_diagnosers.rules_version)
        yield
