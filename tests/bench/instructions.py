"""Instructions of a verdict, counted by Valgrind. Unlike time, they do not depend on other work on the machine.

usage: python -m tests.bench instructions
"""

import gc
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import orjson

from classifiers import signatures
from classifiers.case_builder import build_case
from classifiers.composition.noise import Noise, add_noise
from classifiers.contracts import RawCase
from classifiers.diagnoser import Diagnoser
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner
from service import settings
from service.contracts.verdict_wire import wire_of
from service.formats import recognise
from service.formats.field_reading import Skipped
from service.recommend import event_facts, policy
from service.recommend.advise import advise
from tests.bench import workload

EVENTS = 20  # that are counted
WARM_UP = 60  # before them: caches, and patterns that are compiled when they are first used (most of them are by then)
NODE_EVENTS = 200
# One part in a process of its own; what is compiled has to be known before it is imported.
PROGRAM = """
import sys
from service import native_modules
native_modules.use()
from tests.bench import instructions
instructions.count(sys.argv[1])
"""
NOW = datetime(2026, 11, 2, tzinfo=UTC)


def verdict() -> Callable[[], None]:
    """Decode an event, classify it, advise, and build the stored verdict; without a database."""
    diagnoser = Diagnoser.load(settings.read().model_dir)
    rules = policy.built_in()
    records = list(workload.events(WARM_UP + EVENTS))

    def run(some: Sequence[bytes]) -> None:
        events = [event for one in some if not isinstance(event := recognise.parse(one), Skipped)]
        for event, found in zip(events, diagnoser.diagnose([build_case(one) for one in events]), strict=True):
            advice = advise(found, event.facts(), event_facts.without_history(event, NOW, rules), rules)
            wire_of(
                found, advice, event_id=event.key(), cluster=event.cluster, job_id=event.job_id, attempt=event.attempt
            )

    run(records[:WARM_UP])
    return lambda: run(records[WARM_UP:])


def evidence(node_events: int, *, known: bool = False) -> Callable[[], None]:
    """Extract evidence; `known`: the same node events were read before."""
    extractor = Extractor(Scanner(signatures.packaged()))
    cases = _cases(node_events)
    for case in cases[:WARM_UP]:
        extractor.extract(case)
    counted = cases[WARM_UP:]
    if known:
        counted = [case for case in counted[: EVENTS // 10] for _ in range(10)]
        for case in counted[::10]:
            extractor.extract(case)

    def run() -> None:
        for case in counted:
            extractor.extract(case)

    return run


PARTS: dict[str, Callable[[], Callable[[], None]]] = {
    "verdict": verdict,
    "evidence": lambda: evidence(0),
    "evidence with new node events": lambda: evidence(NODE_EVENTS),
    "evidence with known node events": lambda: evidence(NODE_EVENTS, known=True),
}


def _cases(node_events: int) -> list[RawCase]:
    cases = []
    for number, event in enumerate(workload.events(WARM_UP + EVENTS)):
        noise = Noise(node_events=node_events, log_blocks=0)
        cases.append(build_case(add_noise(orjson.loads(event), random.Random(number), noise)))
    return cases


def count(part: str) -> None:
    """Run one part in this process, which runs under Valgrind; only the part itself is counted."""
    run = PARTS[part]()
    gc.disable()
    control = ["callgrind_control", "-i"]
    subprocess.run([*control, "on", str(os.getpid())], stdout=subprocess.DEVNULL, check=True)
    run()
    subprocess.run([*control, "off", str(os.getpid())], stdout=subprocess.DEVNULL, check=True)
    os._exit(0)  # the end of the interpreter is no part of it


def run() -> dict[str, float]:
    """Print and return millions of instructions for an event, by part."""
    if shutil.which("valgrind") is None:
        print("valgrind is not installed")
        return {}
    found: dict[str, float] = {}
    for part in PARTS:
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null"]
        command = [*valgrind, sys.executable, "-c", PROGRAM, part]
        seeded = {**os.environ, "PYTHONHASHSEED": "0"}
        output = subprocess.run(command, env=seeded, capture_output=True, text=True, check=True).stderr
        collected = re.search(r"Collected : (\d+)", output)
        assert collected is not None, output[-500:]
        found[part] = int(collected[1]) / EVENTS / 1e6
        print(f"{part:32} {found[part]:6.2f} million instructions an event")
    return found
