"""The simulated truth: the same for every policy, and according to its parameters."""

import pytest

from tests.simulations.policy import parameters
from tests.simulations.policy.engine import Engine
from tests.simulations.policy.strategies import Blind, NoResubmits, Oracle
from tests.simulations.policy.verdicts import packaged
from tests.simulations.policy.world import World


def world(seed: int = 1, **changed: float) -> World:
    made = parameters.default().by_name
    return World(parameters.Parameters({**made, "jobs": 400, **changed}), packaged(), seed)


def test_the_same_seed_gives_the_same_world() -> None:
    assert world().jobs == world().jobs
    assert world().outages == world().outages
    assert world().jobs != world(2).jobs
    assert Engine(world(), Blind()).run() == Engine(world(), Blind()).run()


def test_a_policy_does_not_change_the_world_of_the_next() -> None:
    one = world()
    first = Engine(one, Blind()).run()
    Engine(one, Oracle()).run()
    assert Engine(one, Blind()).run() == first


def test_without_resubmits_nothing_is_rescued_and_the_oracle_wastes_nothing() -> None:
    nobody, oracle = Engine(world(), NoResubmits()).run(), Engine(world(), Oracle()).run()
    assert (nobody.retries, nobody.wasted, nobody.rescued) == (0, 0.0, 0)
    assert oracle.wasted == 0
    assert oracle.rescued > 0


def test_jobs_with_bugs_are_never_rescued() -> None:
    buggy = world(buggy=1.0, node_faults=1e-9, passing=1e-9, outages=1e-9, lemons=1e-9)
    bugs = sum(job.bug_at is not None for job in buggy.jobs)
    tried = Engine(buggy, Blind()).run()
    assert tried.failed_jobs == bugs > 300
    assert tried.retries == 3 * bugs
    assert tried.rescued == 0
    assert tried.wasted > 0


def test_without_faults_nothing_fails() -> None:
    calm = world(buggy=1e-9, node_faults=1e-9, passing=1e-9, outages=1e-9, lemons=1e-9)
    assert Engine(calm, NoResubmits()).run().failed_jobs == 0


@pytest.mark.parametrize("name", [one.name for one in parameters.listed()])
def test_one_parameter_is_varied_and_a_share_is_limited_to_one(name: str) -> None:
    changed = parameters.default().with_one(name, 1.5).by_name
    assert {key for key, value in changed.items() if value != parameters.default()[key]} <= {name}
    one = next(one for one in parameters.listed() if one.name == name)
    assert changed[name] <= 1 or not one.is_share
