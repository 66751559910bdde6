"""A number of devices that no machine has shows a lost device; half of a machine shows a wrong setting."""

import pytest

from tests.classifiers.packaged_catalogue import SCANNER

ENTRY = "nvidia-health.one-of-machine-missing"


def knows(line: str) -> bool:
    return any(hit.id == ENTRY for found in SCANNER.scan(line) for hit in found.hits)


@pytest.mark.parametrize(("wanted", "there"), [(4, 3), (8, 7), (8, 5), (16, 15), (16, 12)])
def test_one_or_a_few_devices_less_than_a_machine_has_are_lost(wanted: int, there: int) -> None:
    assert knows(f"ValueError: Expected {wanted} GPUs on each host, found {there}")
    assert knows(f"RuntimeError: {there} of the {wanted} devices are visible, found {there} devices, need {wanted}")
    assert knows(f"nproc_per_node={wanted} but only {there} GPUs are there")


@pytest.mark.parametrize(("wanted", "there"), [(8, 4), (4, 2), (8, 1), (16, 8), (2, 1), (8, 8)])
def test_half_of_a_machine_or_one_device_is_a_setting(wanted: int, there: int) -> None:
    assert not knows(f"ValueError: Expected {wanted} GPUs on each host, found {there}")
    assert not knows(f"nproc_per_node={wanted} but only {there} GPUs are there")


@pytest.mark.parametrize(
    "line",
    [
        "using 8 GPUs, device 7 is the last",
        "requested 8 GPUs, rank 5 failed",
        "device_count() == 8, local rank 7",
        "expected 8 shards but found 7",
    ],
)
def test_other_numbers_are_no_count_of_devices(line: str) -> None:
    assert not knows(line)
