"""What an export of labels holds of logs: all that the classifier read, and nothing of failures without their log."""

from datetime import timedelta

from service.feedback import label_export
from tests.service.learning.world import World

LICENCE = "flexnet: no seat left on licence server lic{n} for feature solver-pro, giving up"
PROGRESS = "".join(f"step {number} loss 2.{number} time {number} ms lr 0.1 tokens 123\n" for number in range(4_000))


def test_a_label_whose_log_was_removed_is_not_learned(world: World) -> None:
    row = world.fails(LICENCE.format(n=1))
    world.label(row, "user", "USER.4")
    assert len(list(label_export.cases(world.store))) == 1
    world.store.purge(logs_before=world.clock.now() + timedelta(days=1))
    assert not list(label_export.cases(world.store))
    assert world.retrain().fit.layer.is_empty


def test_a_recurrence_is_recognised_though_the_error_is_far_from_the_end_of_its_log(world: World) -> None:
    first = world.fails(f"{LICENCE.format(n=1)}\n{PROGRESS}")
    assert first.cause != "USER.4"
    world.label(first, "user", "USER.4")
    world.retrain()
    world.waits()
    assert world.fails(LICENCE.format(n=4)).cause == "USER.4"
    assert world.fails(f"{LICENCE.format(n=5)}\n{PROGRESS}").cause == "USER.4"
    assert world.fails(f"SomethingError: never seen before\n{PROGRESS}").cause != "USER.4"
