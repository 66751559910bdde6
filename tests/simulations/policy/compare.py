"""Compares policies over the same seeds, with intervals, and with every parameter multiplied by 0.5 and 1.5."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import fmean, median

from service.recommend.policy import Policy, built_in
from tests.simulations.policy.engine import Counted, Engine, Strategy
from tests.simulations.policy.parameters import Parameters, default, listed
from tests.simulations.policy.service_policy import Guarded
from tests.simulations.policy.strategies import Blind, NoResubmits, Oracle
from tests.simulations.policy.verdicts import Measured, packaged
from tests.simulations.policy.world import World

FACTORS = (0.5, 1.5)
LEAST_RATIO, LEAST_SHARE, LEAST_SHARE_TRUE = 10.0, 0.80, 0.95
_DRAWS = 2000
BLIND, OURS, LOGS, TRUE, ORACLE = "blind retry ×3", "this policy", "this policy, logs alone", "true verdicts", "oracle"


@dataclass(frozen=True, slots=True)
class Figures:
    """One seed under one policy. `to_rescue`: median hours from the first failure to the successful run."""

    failed: int
    retries: int
    wasted: float
    rescued: int
    to_rescue: float | None


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float


def strategies(policy: Policy, measured: Measured) -> Mapping[str, Callable[[], Strategy]]:
    """The compared policies, by their names in the table."""
    return {
        "none": NoResubmits,
        BLIND: Blind,
        LOGS: partial(Guarded, policy, measured, fleet=False),
        OURS: partial(Guarded, policy, measured),
        TRUE: partial(Guarded, policy, measured, truthful=True),
        ORACLE: Oracle,
    }


def _figures(counted: Counted) -> Figures:
    hours = median(counted.to_rescue) if counted.to_rescue else None
    return Figures(counted.failed_jobs, counted.retries, counted.wasted, counted.rescued, hours)


def one_seed(parameters: Parameters, names: Sequence[str], seed: int) -> dict[str, Figures]:
    """Every named policy in the world of one seed."""
    measured = packaged()
    world = World(parameters, measured, seed)
    made = strategies(built_in(), measured)
    return {name: _figures(Engine(world, made[name]()).run()) for name in names}


Seeds = Sequence[Mapping[str, Figures]]


def interval(values: Sequence[float]) -> Interval:
    """The mean over seeds and its bootstrap interval; the same values give the same interval."""
    return ratio([(value, 1.0) for value in values])


def ratio(pairs: Sequence[tuple[float, float]]) -> Interval:
    """Sum of the first values over sum of the second, bootstrapped over seeds."""
    random = Random(1)

    def of(drawn: Iterable[tuple[float, float]]) -> float:
        drawn = list(drawn)
        below = sum(second for _, second in drawn)
        return sum(first for first, _ in drawn) / below if below else float("inf")

    tried = sorted(of(random.choices(pairs, k=len(pairs))) for _ in range(_DRAWS))
    return Interval(of(pairs), tried[int(0.025 * _DRAWS)], tried[int(0.975 * _DRAWS) - 1])


def less_wasted(seeds: Seeds, name: str) -> Interval:
    """How many times fewer GPU-hours a policy wastes than blind retries."""
    return ratio([(one[BLIND].wasted, one[name].wasted) for one in seeds])


def of_oracle(seeds: Seeds, name: str) -> Interval:
    """Share of the oracle's rescues."""
    return ratio([(one[name].rescued, one[ORACLE].rescued) for one in seeds])


def hours_to_rescue(seeds: Seeds, name: str) -> float | None:
    """Mean over seeds of the median hours."""
    known = [one[name].to_rescue for one in seeds if one[name].to_rescue is not None]
    return fmean(hours for hours in known if hours is not None) if known else None


def base(seeds: int, workers: int) -> Seeds:
    """Every policy with the default parameters."""
    names = tuple(strategies(built_in(), packaged()))
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(partial(one_seed, default(), names), range(seeds)))


def varied(seeds: int, workers: int) -> dict[tuple[str, float], Seeds]:
    """The policies with targets, with each parameter multiplied by 0.5 and 1.5."""
    names = (BLIND, OURS, TRUE, ORACLE)
    out: dict[tuple[str, float], Seeds] = {}
    with ProcessPoolExecutor(workers) as pool:
        for parameter in listed():
            for factor in FACTORS if not parameter.fixed else ():
                changed = default().with_one(parameter.name, factor)
                out[parameter.name, factor] = list(pool.map(partial(one_seed, changed, names), range(seeds)))
    return out
