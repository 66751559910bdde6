"""Where things are in a cluster's API."""

from typing import Any
from urllib.parse import quote

Object = dict[str, Any]


def collection(group: str, plural: str, namespace: str | None) -> str:
    """The path of a kind's objects, such as ("batch/v1", "jobs", "ml"); all namespaces where it is None."""
    root = "/api/v1" if group == "v1" else f"/apis/{group}"
    where = "" if namespace is None else f"/namespaces/{quote(namespace, safe='')}"
    return f"{root}{where}/{plural}"


def named(group: str, plural: str, namespace: str | None, name: str) -> str:
    """The path of one object."""
    return f"{collection(group, plural, namespace)}/{quote(name, safe='')}"
