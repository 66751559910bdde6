"""Parses records of any supported format to a job-completion/1 event.

A format is recognised by a few characteristic keys, cheapest test first. Every input gives an event, a `Skipped` or an
UnreadableRecord.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from classifiers.case_builder import nests_deeper
from service.contracts.event import MAX_EVENT_BYTES, JobCompletion, from_object
from service.errors import FieldError, UnreadableRecord
from service.formats import cloud_event, field_reading, ray
from service.formats.field_reading import Skipped, tolerant
from service.formats.kubernetes import job as kubernetes_job
from service.formats.kubernetes import kubeflow, rayjob
from service.formats.kubernetes import meta as kubernetes_meta
from service.formats.kubernetes import pod as kubernetes_pod
from service.formats.slurm import accounting as slurm_accounting
from service.formats.slurm import epilog as slurm_epilog
from service.formats.slurm import job as slurm_job

__all__ = ["Skipped", "parse"]

_WRAPPED_MOST = 4
# Deeper than any format; stored events are serialized and redacted recursively.
_DEEPEST = 100
_WATCH_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})
# Required (the cluster may be that of the topic) and in no other format: with them, any other field is one of the site.
_NATIVE_FIELDS = frozenset({"job_id", "status", "ended_at"})
_NATIVE_SIGNS = ("event_id", *_NATIVE_FIELDS)
EXPECTED = (
    "a job-completion/1 event, a CloudEvent, a Slurm record (jobid), an epilog environment (SLURM_JOB_ID), "
    "one of the jobs of sacct --json, "
    "a Kubernetes Pod, Job, JobSet, PyTorchJob, TrainJob or RayJob, or a Ray job (entrypoint)"
)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_REPLACEMENTS = str.maketrans({"\x00": "\ufffd"})


def parse(
    value: bytes | None, headers: Sequence[tuple[str, bytes]] = (), *, cluster: str | None = None
) -> JobCompletion | Skipped:
    """Parse one record of a topic, a request or a file.

    Args:
        value: JSON, at most 16 MiB; None is a tombstone of a topic.
        headers: Kafka or HTTP headers; used for CloudEvents only.
        cluster: the cluster name for records without one.

    Raises:
        UnreadableRecord: a field is wrong; the error names it and the expected value. No other exception.
    """
    if value is None:
        return Skipped("no value (a topic's deletion marker)")
    if headers and not cloud_event.is_structured(headers):
        cloud_event.binary_attributes(headers)  # validates the headers; the value is the data
    elif headers:
        obj = _decode(value)
        if not isinstance(obj, dict):
            raise field_reading.unreadable("(whole object)", "a CloudEvent", obj)
        return _inner(cloud_event.structured_data(obj), cluster, 1)
    return _read(_decode(value), cluster, 0)


def _decode(value: bytes) -> Any:
    """Decode strict UTF-8 JSON without NaN, at most 100 levels deep; the last of duplicate keys counts.

    Null characters and lone surrogates in texts are replaced.
    """
    if len(value) > MAX_EVENT_BYTES:
        raise UnreadableRecord(
            f"(whole record): at most {MAX_EVENT_BYTES} bytes",
            (FieldError("(whole record)", f"at most {MAX_EVENT_BYTES} bytes", f"{len(value)} bytes"),),
        )
    try:
        obj = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        if (obj := _with_lone_surrogates(value)) is not None:
            return obj
        raise UnreadableRecord(f"not JSON: {error}", (FieldError("(whole record)", f"JSON: {error}"),)) from None
    if _may_be_deep(value):
        _check_depth(obj)
    if b"\\u0000" in value:
        return _repaired(obj)
    return obj


def _with_lone_surrogates(value: bytes) -> Any:
    """JSON with escapes of lone surrogates, repaired; None if it has none or is not JSON for another reason.

    orjson refuses them. Python and JavaScript write them for text that is no UTF-8, or that was cut in a character.
    """
    if _SURROGATE.search(value) is None:
        return None
    try:
        obj = json.loads(value.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    _check_depth(obj)
    return _repaired(obj)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _may_be_deep(value: bytes) -> bool:
    """Whether the text has enough brackets to nest too deep. `count` reads byte by byte; a few searches are faster."""
    opened = 0
    for bracket in (b"{", b"["):
        at = value.find(bracket)
        while at >= 0 and opened <= _DEEPEST:
            opened += 1
            at = value.find(bracket, at + 1)
    return opened > _DEEPEST


def _check_depth(value: Any) -> None:
    if nests_deeper(value, _DEEPEST):
        raise field_reading.unreadable("(whole object)", f"JSON nested at most {_DEEPEST} levels deep")


def _repaired(value: Any) -> Any:
    """Replace null characters (invalid in PostgreSQL) and lone surrogates (invalid in UTF-8) by U+FFFD."""
    if isinstance(value, str):
        if "\x00" in value:
            value = value.translate(_REPLACEMENTS)
        if not value.isascii():
            value = _without_surrogates(value)
        return value
    if isinstance(value, dict):
        return {_repaired(key) if isinstance(key, str) else str(key): _repaired(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_repaired(item) for item in value]
    return value


def _without_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _read(obj: Any, cluster: str | None, depth: int) -> JobCompletion | Skipped:
    if not isinstance(obj, dict):
        raise field_reading.unreadable("(whole object)", EXPECTED, obj)
    if "specversion" in obj and "schema" not in obj:
        if depth >= _WRAPPED_MOST:
            raise field_reading.unreadable("data", f"at most {_WRAPPED_MOST} envelopes around an event")
        return _inner(cloud_event.structured_data(obj), cluster, depth + 1)
    for is_it, reader in _FORMATS:
        if is_it(obj):
            return reader(obj, cluster)
    raise field_reading.unreadable("(whole object)", EXPECTED, f"keys {', '.join(list(obj)[:6])}" if obj else "{}")


def _native(obj: Mapping[str, Any], cluster: str | None) -> JobCompletion:
    return from_object(obj if cluster is None or obj.get("cluster") is not None else {**obj, "cluster": cluster})


def _inner(data: Any, cluster: str | None, depth: int) -> JobCompletion | Skipped:
    """Parse the content of an envelope: decoded JSON, or bytes or text that contain JSON."""
    if isinstance(data, bytes):
        data = _decode(data)
    elif isinstance(data, str):
        data = _decode(data.encode())
    return _read(data, cluster, depth)


def _watched(envelope: Mapping[str, Any], cluster: str | None) -> JobCompletion | Skipped:
    kind = envelope["type"]
    if kind in {"BOOKMARK", "ERROR"}:
        return Skipped(f"Kubernetes: a watch's {kind} is not a job's end")
    named = field_reading.text(envelope, "cluster") or cluster
    return _kubernetes(envelope["object"], named, deleted=kind == "DELETED")


def _kubernetes(obj: Mapping[str, Any], cluster: str | None, *, deleted: bool = False) -> JobCompletion | Skipped:
    kind = field_reading.text(obj, "kind")
    if kind in _KINDS and not (kind == "Job" and _group(obj) not in {"", "batch"}):
        read = _KINDS[kind]
        return tolerant(lambda rest, name: read(rest, name, deleted), kubernetes_meta.OPTIONAL)(obj, cluster)
    if kind == "Event":
        return Skipped("Kubernetes: an Event is not a job's end")
    raise field_reading.unreadable(
        "kind", f"one of {', '.join(_KINDS)} (a Job of group batch)", f"{_group(obj)}/{kind}"
    )


def _group(obj: Mapping[str, Any]) -> str:
    group, slash, _ = (field_reading.text(obj, "apiVersion") or "").partition("/")
    return group if slash else ""


def _is_ray(obj: Mapping[str, Any]) -> bool:
    return "entrypoint" in obj and ("submission_id" in obj or "driver_info" in obj or "ended_at" not in obj)


_KINDS: dict[str, Callable[[Mapping[str, Any], str | None, bool], JobCompletion | Skipped]] = {
    "Pod": lambda obj, cluster, deleted: kubernetes_pod.read(obj, cluster, deleted=deleted),
    "Job": lambda obj, cluster, deleted: kubernetes_job.read(obj, cluster, deleted=deleted),
    "JobSet": lambda obj, cluster, deleted: kubeflow.read(obj, cluster, kind="JobSet", deleted=deleted),
    "PyTorchJob": lambda obj, cluster, deleted: kubeflow.read(obj, cluster, kind="PyTorchJob", deleted=deleted),
    "TrainJob": lambda obj, cluster, deleted: kubeflow.read(obj, cluster, kind="TrainJob", deleted=deleted),
    "RayJob": lambda obj, cluster, deleted: rayjob.read(obj, cluster, deleted=deleted),
}
# Test and reader of each format, most frequent formats first; the first match is used.
_FORMATS: tuple[
    tuple[Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any], str | None], JobCompletion | Skipped]], ...
] = (
    (lambda obj: "schema" in obj or obj.keys() >= _NATIVE_FIELDS, _native),
    (lambda obj: "jobid" in obj, tolerant(slurm_job.read, slurm_job.OPTIONAL)),
    (lambda obj: "SLURM_JOB_ID" in obj, tolerant(slurm_epilog.read, slurm_epilog.OPTIONAL)),
    (slurm_accounting.is_it, tolerant(slurm_accounting.read, slurm_accounting.OPTIONAL)),
    (lambda obj: isinstance(obj.get("object"), dict) and str(obj.get("type")) in _WATCH_TYPES, _watched),
    (lambda obj: "kind" in obj and ("metadata" in obj or "apiVersion" in obj), _kubernetes),
    (lambda obj: "involvedObject" in obj, lambda _, __: Skipped("Kubernetes: an Event is not a job's end")),
    (_is_ray, tolerant(ray.read, ray.OPTIONAL)),
    (lambda obj: any(sign in obj for sign in _NATIVE_SIGNS), _native),
)
