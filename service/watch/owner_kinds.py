"""Kinds that own Jobs and pods: their end is that of the job, and Jobs and pods under them are its attempts."""

from collections.abc import Sequence

from service.formats.kubernetes import meta as kubernetes_meta
from service.formats.kubernetes.meta import Meta
from service.watch.reflector import Collection


def owner_collections(namespaces: Sequence[str], labels: str | None) -> list[Collection]:
    """Return the collections to watch: these kinds (of `labels`, in `namespaces` or all), as far as they exist."""
    return [
        Collection(kind, group, plural, namespace, labels, optional=True)
        for namespace in namespaces or (None,)
        for kind, (group, plural) in kubernetes_meta.JOB_OWNERS.items()
    ]


def has_owner(kind: str, meta: Meta) -> bool:
    """Return whether a pod has a controller, or another object an owner of these kinds, whose end counts."""
    return meta.owner is not None if kind == "Pod" else kubernetes_meta.is_under_owner(meta, kind)
