"""The job ids of Kubernetes: the full name of the object that users know as their job."""

from typing import NamedTuple

_PARTS = 3


class KubernetesName(NamedTuple):
    """The full name of an object: its text is `namespace/Kind/name`."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        """`namespace/Kind/name`."""
        return "/".join(self)


def kubernetes_name(job_id: str) -> KubernetesName | None:
    """What a job id names; None for a job id of another scheduler."""
    parts = job_id.split("/", _PARTS - 1)
    return KubernetesName(*parts) if len(parts) == _PARTS else None
