"""Work in portions leaves pauses for others."""

import time

from service.portions import in_portions


def test_each_portion_but_the_last_is_followed_by_a_pause_as_long_as_it_took() -> None:
    left, pauses = [0.02, 0.001, 0.0], list[float]()

    def step() -> bool:
        time.sleep(left.pop(0))
        return bool(left)

    in_portions(step, pauses.append)
    assert left == []
    assert len(pauses) == 2
    assert pauses[0] >= 0.02
