"""Objects in memory that can fail, hang or lose their content."""

import threading
from datetime import date

from service.errors import NotFound, Unavailable


class FakeObjects:
    """Passes the contract suite; `down` makes each call fail, `hanging` makes writes wait until it is cleared."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.calls = 0
        self.down = False
        self.proceed = threading.Event()
        self.proceed.set()
        self.together: threading.Barrier | None = None  # reads wait for each other

    def put(self, key: str, data: bytes) -> None:
        self._call()
        self.proceed.wait(60)
        self.content[key] = data

    def get(self, key: str, size: int) -> bytes:
        self._call()
        if self.together is not None:
            self.together.wait()
        if key not in self.content:
            raise NotFound("the log is no longer in the log storage")
        return self.content[key][: size + 1]

    def days(self) -> list[date]:
        self._call()
        return sorted({date.fromisoformat(key[:10]) for key in self.content})

    def remove_day(self, day: date) -> int:
        self._call()
        gone = [key for key in self.content if key.startswith(day.isoformat())]
        for key in gone:
            del self.content[key]
        return len(gone)

    def check(self) -> None:
        self._call()

    def _call(self) -> None:
        self.calls += 1
        if self.down:
            raise Unavailable("no answer from password=hunter2xyz")
