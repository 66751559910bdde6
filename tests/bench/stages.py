"""Processor time of a worker by stage: the functions of each stage are wrapped, nested stages are subtracted."""

import importlib
import time
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

# Stage, module, and the function in it. A function within another stage counts for its own alone.
FUNCTIONS = (
    ("poll the broker", "service.messaging.kafka.source", "KafkaSource.poll"),
    ("decode and check events", "service.messaging.consumer", "Consumer._read"),
    ("redact events", "service.pipeline.diagnose", "cleaned"),
    ("read the logs", "service.logs.fetch", "LogFetcher.fetch_all"),
    ("extract evidence", "classifiers.extraction.extractor", "Extractor.extract_all"),
    ("classify", "classifiers.diagnoser", "Diagnoser.diagnose"),
    ("evidence from the fleet", "service.pipeline.classification", "refine"),
    ("evidence from the fleet", "service.pipeline.classification", "in_context"),
    ("advice with its history", "service.automation.service", "Automation.advise"),
    ("store", "service.pipeline.diagnose", "Diagnose.__call__"),
)
OTHER = "other threads and the loop"


class StageClock:
    """Sums the processor time of this thread by stage, without that of the stages within it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._within: list[float] = []

    def wrap(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its time counted for the stage."""

        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            self._within.append(0.0)
            began = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                taken = time.thread_time() - began
                self.seconds[stage] = self.seconds.get(stage, 0.0) + taken - self._within.pop()
                if self._within:
                    self._within[-1] += taken

        return timed

    def install(self) -> None:
        """Wrap the functions of all stages."""
        for stage, module, path in FUNCTIONS:
            owner: Any = importlib.import_module(module)
            *outer, name = path.split(".")
            for one in outer:
                owner = getattr(owner, one)
            setattr(owner, name, self.wrap(stage, getattr(owner, name)))


def table(seconds: Mapping[str, float], events: int) -> list[str]:
    """The lines of a table: milliseconds of processor time per event by stage."""
    order = dict.fromkeys(stage for stage, _, _ in FUNCTIONS)
    rows = [(stage, seconds[stage]) for stage in (*order, OTHER) if stage in seconds]
    return [f"  {stage:26} {1000 * taken / events:6.3f} ms" for stage, taken in rows]
