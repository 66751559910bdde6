import os
import signal
import threading
import time

from service.shutdown import SignalShutdownFlag


def test_is_set_by_a_signal_and_ends_a_wait_at_once() -> None:
    stop = SignalShutdownFlag()
    kept = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    stop.listen()
    try:
        assert not stop.wait(0.01)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
        started = time.monotonic()
        assert stop.wait(120)
        assert time.monotonic() - started < 60
        assert stop.is_set()
        assert stop.wait(120)  # and stays so
    finally:
        signal.signal(signal.SIGTERM, kept[0])
        signal.signal(signal.SIGINT, kept[1])
        stop.close()
