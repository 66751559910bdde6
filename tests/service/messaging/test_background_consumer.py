"""What nodes say is consumed beside the jobs: at least once, with no influence but one: a failure ends both."""

import threading

import pytest

from service.errors import ConfigurationError, FaultlineError
from service.messaging.background_consumer import BackgroundConsumer
from service.shutdown import ShutdownFlag


def obey(stop: ShutdownFlag) -> None:
    while not stop.wait(0.01):
        pass


def test_it_runs_in_the_background_and_ends_with_the_main_consumer() -> None:
    first = threading.Event()
    before = set(threading.enumerate())  # some may end meanwhile
    with BackgroundConsumer(obey, first) as beside:
        [own] = set(threading.enumerate()) - before
        assert not beside.stop.is_set()
        assert not beside.stop.wait(0.01)
        first.set()
        assert beside.stop.is_set()
        assert beside.stop.wait(10)
    assert not own.is_alive()


def test_its_failure_ends_the_main_consumer_and_is_reported() -> None:
    def broken(_stop: ShutdownFlag) -> None:
        raise ConfigurationError("the broker refuses")

    beside = BackgroundConsumer(broken, threading.Event())

    def first() -> None:
        with beside:
            obey(beside.stop)

    with pytest.raises(ConfigurationError, match="the broker refuses"):
        first()


def test_the_first_one_s_failure_goes_before_its_own() -> None:
    def broken(_stop: ShutdownFlag) -> None:
        raise ValueError("a fault")

    def first() -> None:
        with BackgroundConsumer(broken, threading.Event()) as beside:
            obey(beside.stop)
            raise KeyError("the first")

    with pytest.raises(KeyError):
        first()


def test_an_internal_error_is_reported_by_its_type_alone() -> None:
    def broken(_stop: ShutdownFlag) -> None:
        raise ValueError("secret")

    def first() -> None:
        with BackgroundConsumer(broken, threading.Event()) as beside:
            obey(beside.stop)

    with pytest.raises(FaultlineError, match=r"ValueError$"):
        first()
