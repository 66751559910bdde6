import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.slurm.tres import TrackableResources, read_tres


@pytest.mark.parametrize(
    ("text", "tres"),
    [
        (None, TrackableResources()),
        ("cpu=4,mem=500M,node=1", TrackableResources(4, 500 * 2**20)),
        ("mem=1.5G", TrackableResources(memory_bytes=3 * 2**29)),
        ("mem=512", TrackableResources(memory_bytes=2**29)),
        ("gres/gpu=8,gres/gpu:h100=8", TrackableResources(gpus=8, gpu_type="h100")),
        ("gres/gpu:a100=2,gres/gpu:v100=1", TrackableResources(gpus=3)),
        ("cpu=many,mem=NaN,gres/gpu=", TrackableResources()),
        ("mem=1e999999999", TrackableResources()),
    ],
)
def test_resources(text: str | None, tres: TrackableResources) -> None:
    assert read_tres(text) == tres


@given(st.text(alphabet="cpumegrs/:=,0123456789.KMGTPe-", max_size=80))
def test_any_text_is_read_without_complaint(text: str) -> None:
    found = read_tres(text)
    assert all(number is None or 0 <= number <= 2**53 for number in (found.cpus, found.memory_bytes, found.gpus))
