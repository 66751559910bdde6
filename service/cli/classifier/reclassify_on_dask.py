"""`faultline reclassify --scheduler ADDRESS`: the same on the workers of a Dask cluster.

The command divides the failures into ranges of ids and sends the ranges, nothing else: each worker reads failures from
PostgreSQL and stores new versions with its own settings. What is done is recorded in the database, so that the command
continues where it stopped after the loss of a worker, of the scheduler or of the command itself.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Final

from classifiers.diagnoser import Diagnoser, rules_version
from classifiers.model.site.layer import parse
from service import compose, settings
from service.backoff import Backoff
from service.db.session import Store
from service.errors import ConfigurationError, Conflict, FieldError, Unavailable
from service.failures.records import FailureFilter
from service.learning.reclassification import (
    DEFAULT_OPTIONS,
    IDS_OF_RANGE,
    Range,
    Reclassification,
    RunOptions,
    classify_range,
    ranges,
)
from service.learning.records import PACKAGED, ReclassificationRun, Reclassified
from service.recommend.advise import Advisor

CONNECT_S: Final = 10
# Ranges that wait at each thread of a worker, so that none is idle between two.
AHEAD: Final = 3
# A range whose worker dies this often is not at fault by chance: it needs too much memory, say.
MOST_ATTEMPTS: Final = 10
# A database that is restarted answers again within this time.
RETRIED_FOR_S: Final = 120.0
_building = threading.Lock()


@dataclass(frozen=True, slots=True)
class WorkerTask:
    """A range, and what must classify it: the id of the site layer, and the full names of model and signatures."""

    range: Range
    layer: str
    model: str
    rules: str


def reclassification(services: compose.ProcessServices, layer: str) -> Reclassification:
    """Classifies stored failures again with a layer.

    Raises:
        NotFound: no such layer.
        Conflict: the layer was fitted on another model, or is not sealed with the key.
        Unavailable: the database does not answer.
    """
    with services.store.reading() as reading:
        stored = None if layer == PACKAGED else reading.site_layers.get(layer)
    why = None if stored is None else services.retraining.promotions.misfit(stored)
    if why is not None:
        problem = FieldError("model", "a layer that can give verdicts here", layer)
        raise Conflict(f"{layer} cannot be used: {why}", (problem,))
    chosen = None if stored is None else parse(stored.text)
    catalogue = services.signatures.current().layered.catalogue
    return Reclassification(
        services.store,
        services.clock,
        Diagnoser(services.diagnoser.packaged, catalogue, chosen),
        Advisor(services.policy, services.clock),
        services.automation.withdraw_unsupported,
    )


def classify_on_worker(task: WorkerTask) -> Reclassified | None:
    """Runs on a worker: classify one range with the settings of this machine.

    Raises:
        ConfigurationError: this worker has another model, or other signatures.
        Unavailable: the database did not answer for two minutes.
    """
    waited, pauses = 0.0, Backoff()
    while True:
        try:
            services, again = _parts(task.layer)
            if again.model != task.model:
                raise ConfigurationError(f"this worker has the model {again.model}, the command {task.model}")
            if again.rules != task.rules:
                raise ConfigurationError(f"this worker has the signatures {again.rules}, the command {task.rules}")
            return classify_range(services.store, again, task.range)
        except Unavailable:
            if waited >= RETRIED_FOR_S:
                raise
            pause = pauses.next()
            threading.Event().wait(pause)
            waited += pause


def run(
    services: compose.ProcessServices,
    filters: FailureFilter,
    layer: str,
    scheduler: str,
    *,
    wanted: str,
    size: int = IDS_OF_RANGE,
    options: RunOptions = DEFAULT_OPTIONS,
) -> Reclassified:
    """Classify the failures that match again on the workers of a scheduler.

    Args:
        services: the services of this process.
        filters: which failures; `since` must be set.
        layer: the id of the site layer, or `PACKAGED`.
        scheduler: the address of the scheduler, such as tcp://10.0.0.5:8786.
        wanted: the filters as they were given: an unfinished run of the same ones continues.
        size: ids of a range; a run that continues needs the same.
        options: how; `per_second` are ids, None: as fast as the workers are.

    Raises:
        ConfigurationError: Dask is not installed, or the database is not PostgreSQL.
        Unavailable: the scheduler or the database does not answer; starting again continues.
    """
    if services.store.dialect != "postgresql":
        raise ConfigurationError("--scheduler: expected a PostgreSQL database, which all workers can reach")
    used = reclassification(services, layer)
    model, rules = used.model, used.rules
    with services.store.reading() as reading:
        bounds = reading.failure_ranges.bounds(filters)
    if bounds is None or filters.since is None:
        return Reclassified(complete=True)
    name = hashlib.sha256(repr((model, rules, wanted, options.notify)).encode()).hexdigest()[:40]
    found, finished = ReclassificationRun(0, filters.since, *bounds), frozenset[int]()
    if not options.dry_run:
        with services.store.unit_of_work() as work:
            found = work.reclassification_runs.open(name, filters.since, *bounds)
            finished = work.reclassification_runs.done_ranges(found.id)
    filters = replace(filters, since=found.since)
    done = Reclassified()
    todo = [
        WorkerTask(
            Range(None if options.dry_run else found.id, filters, first, until, options.notify), layer, model, rules
        )
        for first, until in ranges(found, size)
        if first not in finished
    ]
    for part in _results(scheduler, todo, services, options.per_second):
        if part is not None:
            done.add(part)
            options.progress(done)
    if options.dry_run:
        return replace(done, complete=True)
    return _finished(services.store, found.id, [first for first, _ in ranges(found, size)])


def _finished(store: Store, run_id: int, firsts: Iterable[int]) -> Reclassified:
    """The counts of the whole run, which is over."""
    with store.unit_of_work() as work:
        left = set(firsts) - work.reclassification_runs.done_ranges(run_id)
        if left:
            raise Unavailable(f"{len(left)} ranges are not stored: start the same command again")
        total = work.reclassification_runs.totals(run_id)
        work.reclassification_runs.finish(run_id)
    total.complete = True
    return total


def _results(
    scheduler: str, todo: list[WorkerTask], services: compose.ProcessServices, per_second: float | None
) -> Iterator[Reclassified | None]:
    """The result of each task, in the order in which they end."""
    try:
        import distributed  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigurationError(f"--scheduler needs Dask: pip install 'faultline[dask]' ({error})") from None
    dask: Any = distributed  # most of it has no types
    gone = f"the scheduler {scheduler} does not answer: start the same command again, it continues where it stopped"
    try:
        client = dask.Client(scheduler, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise Unavailable(f"--scheduler: {scheduler} can't be reached ({error})"[:500]) from None
    try:
        attempts: Counter[int] = Counter()
        pace = _Pace(services, per_second)
        waiting = list(reversed(todo))
        sent: dict[str, WorkerTask] = {}
        running = dask.as_completed(loop=client.loop)
        _send(client, waiting, sent, running, pace)
        for future in running:
            task = sent.pop(future.key)
            try:
                yield future.result()
            except dask.KilledWorker:
                attempts[task.range.first] += 1
                if attempts[task.range.first] >= MOST_ATTEMPTS:
                    raise Unavailable(
                        f"workers end while classifying the failures from {task.range.first}: see their logs"
                    ) from None
                waiting.append(task)
            if client.status != "running":
                raise Unavailable(gone)
            _send(client, waiting, sent, running, pace)
        if waiting or sent:
            raise Unavailable(gone)
    except (dask.CancelledError, OSError):  # a closed connection is an OSError too
        raise Unavailable(gone) from None
    finally:
        client.close(timeout=CONNECT_S)


def _send(client: Any, waiting: list[WorkerTask], sent: dict[str, WorkerTask], running: Any, pace: "_Pace") -> None:
    """Send as many tasks as the workers need to stay busy."""
    most = AHEAD * max(1, sum(client.nthreads().values()))
    while waiting and len(sent) < most:
        task = waiting.pop()
        pace.wait(task.range.until - task.range.first)
        future = client.submit(classify_on_worker, task, pure=False, retries=2)
        sent[future.key] = task
        running.add(future)


class _Pace:
    """Sends at most so many ids a second."""

    def __init__(self, services: compose.ProcessServices, per_second: float | None) -> None:
        self._clock = services.clock
        self._per_second = per_second
        self._next = services.clock.monotonic()

    def wait(self, ids: int) -> None:
        """Wait until this many more may be sent."""
        if self._per_second is None:
            return
        now = self._clock.monotonic()
        self._clock.sleep(max(0.0, self._next - now))
        self._next = max(self._next, now) + ids / self._per_second


def _parts(layer: str) -> tuple[compose.ProcessServices, Reclassification]:
    """The services of this process, and the classifier with a layer and the signatures that are in use now."""
    with _building:
        services = _services()
        rules = rules_version(services.signatures.current().layered.catalogue)
        return services, _classifier(layer, rules)


@cache
def _services() -> compose.ProcessServices:
    """Built once in each process; the settings are those of the worker."""
    services = compose.build(settings.read())
    services.store.check()
    return services


@lru_cache(maxsize=2)
def _classifier(layer: str, rules: str) -> Reclassification:
    """Built once for each layer and version of the signatures."""
    del rules
    return reclassification(_services(), layer)
