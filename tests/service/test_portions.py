"""Work in portions leaves pauses for others."""

from service.portions import in_portions


def test_each_portion_but_the_last_is_followed_by_a_pause_as_long_as_it_took() -> None:
    takes, pauses, now = [4.0, 2.0, 1.0], list[float](), 100.0

    def step() -> bool:
        nonlocal now
        now += takes.pop(0)
        return bool(takes)

    in_portions(step, pauses.append, lambda: now)
    assert takes == []
    assert pauses == [4.0, 2.0]
