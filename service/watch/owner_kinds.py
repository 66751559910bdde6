"""Kinds that own Jobs and pods: their end is that of the job, and Jobs and pods under them are its attempts."""

from collections.abc import Sequence

from service.formats.kubernetes import meta as kubernetes_meta
from service.formats.kubernetes.meta import Meta
from service.watch.reflector import Collection

# Of JobSet, of Kubeflow's trainer v2 and v1, and of KubeRay.
OWNERS = (
    ("JobSet", "jobset.x-k8s.io/v1alpha2", "jobsets"),
    ("TrainJob", "trainer.kubeflow.org/v1alpha1", "trainjobs"),
    ("PyTorchJob", "kubeflow.org/v1", "pytorchjobs"),
    ("RayJob", "ray.io/v1", "rayjobs"),
)


def owner_collections(namespaces: Sequence[str], labels: str | None) -> list[Collection]:
    """Return the collections to watch: these kinds (of `labels`, in `namespaces` or all), as far as they exist."""
    return [
        Collection(kind, group, plural, namespace, labels, optional=True)
        for namespace in namespaces or (None,)
        for kind, group, plural in OWNERS
    ]


def has_owner(kind: str, meta: Meta) -> bool:
    """Return whether a pod has a controller, or another object an owner of these kinds, whose end counts."""
    if kind == "Pod":
        return meta.owner is not None
    above = kubernetes_meta.job_name(meta, kind)
    return above != meta.full_name(kind) and above.split("/")[1] in kubernetes_meta.JOB_OWNERS
