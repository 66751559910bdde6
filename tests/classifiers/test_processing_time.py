"""Cost by order of magnitude, since test machines are noisy. `make bench` gives the figures."""

import time

import orjson

from classifiers.case_builder import build_case
from classifiers.diagnoser import Diagnoser
from tests.bench import workload


def seconds(diagnoser: Diagnoser, size: int) -> float:
    """Processor time of one case, the minimum of three."""
    raws = [build_case(orjson.loads(event)) for event in workload.events(3, seed=size, size=size)]
    taken = []
    for raw in raws:
        began = time.process_time()
        diagnoser.diagnose([raw])
        taken.append(time.process_time() - began)
    return min(taken)


def test_the_cost_is_linear_in_the_log(diagnoser: Diagnoser) -> None:
    diagnoser.diagnose([build_case(orjson.loads(event)) for event in workload.events(5)])
    assert seconds(diagnoser, 2_000_000) < 30 * seconds(diagnoser, 200_000)


def test_a_log_full_of_errors_takes_little_longer(diagnoser: Diagnoser) -> None:
    text = "".join(f"[rank{number % 64}]: RuntimeError: boom {number} failed\n" for number in range(40_000))
    began = time.process_time()
    diagnoser.diagnose([build_case({"status": "failed", "logs": [{"rank": 0, "tail": text}]})])
    assert time.process_time() - began < 10


def test_a_job_on_very_many_nodes_takes_little_longer() -> None:
    """With 100,000 GPUs; comparing each name with all others took three seconds for it."""
    nodes = [f"rack{number // 18:03d}-gpu{number:05d}" for number in range(12_500)]
    began = time.process_time()
    build_case({"status": "failed", "nodes": nodes, "logs": []})
    assert time.process_time() - began < 0.5
