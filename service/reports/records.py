"""Values that queries of the weekly report return and its figures use."""

from dataclasses import dataclass

from service.goodput.records import Scope

EVERYTHING = Scope()  # the scope of the report of all clusters and teams


@dataclass(frozen=True, slots=True)
class Amount:
    """Failed attempts and the GPU-hours they lost; `squares` is the sum of the squared GPU-hours of each."""

    failures: int = 0
    gpu_hours: float = 0.0
    squares: float = 0.0
