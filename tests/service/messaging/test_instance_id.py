import subprocess
import sys
import uuid

from service.messaging.instance_id import claim


def test_workers_of_one_host_get_different_numbers_and_a_freed_one_is_taken_again() -> None:
    name = uuid.uuid4().hex
    first, second, other = claim(name), claim(name), claim(uuid.uuid4().hex)
    assert (first.number, second.number, other.number) == (0, 1, 0)
    first.close()
    again = claim(name)
    assert again.number == 0
    for slot in (second, other, again):
        slot.close()


def test_a_killed_process_leaves_its_number() -> None:
    name = uuid.uuid4().hex
    holding = "from service.messaging.instance_id import claim; "
    holding += f"kept = claim({name!r}); print(kept.number, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", holding], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        taken = claim(name)
        assert taken.number == 1
        process.kill()
    freed = claim(name)
    assert freed.number == 0
    taken.close()
    freed.close()
