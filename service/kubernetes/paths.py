"""Paths of collections and objects in the Kubernetes API."""

from typing import Any
from urllib.parse import quote

Object = dict[str, Any]


def collection(group: str, plural: str, namespace: str | None) -> str:
    """Return the path of a collection, such as ("batch/v1", "jobs", "ml"); `namespace` None: all namespaces."""
    root = "/api/v1" if group == "v1" else f"/apis/{group}"
    where = "" if namespace is None else f"/namespaces/{quote(namespace, safe='')}"
    return f"{root}{where}/{plural}"


def named(group: str, plural: str, namespace: str | None, name: str) -> str:
    """Return the path of one object."""
    return f"{collection(group, plural, namespace)}/{quote(name, safe='')}"
