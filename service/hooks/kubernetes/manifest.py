"""Builds the manifest of the new Job: the old spec without server-generated fields, with the requested changes. Pure.

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/
"""

import copy
import hashlib
import re
from collections.abc import Mapping, MutableMapping
from typing import Any

from service.contracts.advice import LINEAGE_LABEL, REQUEST_LABEL, RESUBMIT_OF_LABEL
from service.formats.kubernetes.meta import quantity
from service.hooks.request import Request

RESUME = "faultline/resume-from"
BATCH = "faultline/batch-factor"
RESUME_VARIABLE = "FAULTLINE_RESUME_FROM"
BATCH_VARIABLE = "FAULTLINE_BATCH_FACTOR"
KUEUE = "kueue.x-k8s.io/queue-name"

# The Job controller generates these; the values of the old Job would make the new Job adopt the old Job's pods.
GENERATED = (
    "controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name",
)  # fmt: skip
# With these, deployment tools would treat the new Job as one of theirs, and delete or "correct" it.
DEPLOYED = (
    "kubectl.kubernetes.io/last-applied-configuration", "argocd.argoproj.io/", "meta.helm.sh/",
    "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "batch.kubernetes.io/job-tracking",
    "batch.kubernetes.io/cronjob-scheduled-timestamp", "kueue.x-k8s.io/workload",
)  # fmt: skip
NAME_MOST = 63  # it is also a label of the pods
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_OWN_ENDING = re.compile(r"-f[0-9a-f]{10}$")
# A larger factor is not a correction of a request but a different job.
MEMORY_MOST = 4.0


class ManifestError(Exception):
    """The requested change cannot be made to this Job; the text gives the reason."""


def new_job_name(old: str, request_id: str) -> str:
    """Return the name of the new Job: the old name with a suffix derived from the request id, so that it is unique."""
    ending = "-f" + hashlib.sha256(request_id.encode()).hexdigest()[:10]
    stem = _OWN_ENDING.sub("", old)[: NAME_MOST - len(ending)].rstrip("-.")
    return f"{stem or 'job'}{ending}"


def new_job(job: Mapping[str, Any], request: Request, killed: str | None = None) -> dict[str, Any]:
    """Return the Job to create.

    Args:
        job: the old Job, as the server returned it.
        request: the request to execute.
        killed: the container that was killed for exceeding its memory limit, if known.

    Raises:
        ManifestError: the Job is bound to an excluded node, or its resource requests can't be changed as requested.
    """
    meta = job.get("metadata") or {}
    spec = copy.deepcopy(dict(job.get("spec") or {}))
    for key in ("selector", "manualSelector"):
        spec.pop(key, None)
    labels, annotations = _kept(meta.get("labels")), _kept(meta.get("annotations"))
    own = _marks(meta, request)
    template = spec.setdefault("template", {})
    inner = template.setdefault("metadata", {}) or {}
    template["metadata"] = {
        "labels": _kept(inner.get("labels")) | _as_labels(own),
        "annotations": _kept(inner.get("annotations")) | own,
    }
    pod = template.setdefault("spec", {})
    _queue(spec, labels)
    _elsewhere(pod, request.exclude_nodes)
    _changed(spec, pod, request.changes, killed)
    _variables(pod, request)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": new_job_name(str(meta.get("name") or "job"), request.request_id),
            "namespace": meta.get("namespace") or "default",
            "labels": labels | _as_labels(own),
            "annotations": annotations | own,
        },
        "spec": spec,
    }


def _kept(given: Any) -> dict[str, str]:
    entries = given if isinstance(given, Mapping) else {}
    return {key: value for key, value in entries.items() if key not in GENERATED and not key.startswith(DEPLOYED)}


def _marks(meta: Mapping[str, Any], request: Request) -> dict[str, str]:
    """Return annotations with the request, the repeated job and its lineage; their values may have any length."""
    labels = request.extra.get("labels")
    own = {str(key): str(value) for key, value in labels.items()} if isinstance(labels, Mapping) else {}
    before = {**(meta.get("annotations") or {}), **(meta.get("labels") or {})}
    own.setdefault(LINEAGE_LABEL, str(before.get(LINEAGE_LABEL) or meta.get("uid") or meta.get("name")))
    own |= {REQUEST_LABEL: request.request_id, RESUBMIT_OF_LABEL: request.job_id}
    if request.resume_from is not None:
        own[RESUME] = request.resume_from
    if "batch_factor" in request.changes:
        own[BATCH] = str(request.changes["batch_factor"])
    return own


def _as_labels(own: Mapping[str, str]) -> dict[str, str]:
    """Return the values that are useful for selectors and valid as labels."""
    return {key: own[key] for key in (REQUEST_LABEL, LINEAGE_LABEL) if key in own and _LABEL.fullmatch(own[key])}


def _queue(spec: MutableMapping[str, Any], labels: Mapping[str, str]) -> None:
    """A Job of Kueue is created suspended until its queue admits it; any other Job starts at once."""
    if KUEUE in labels:
        spec["suspend"] = True
    else:
        spec.pop("suspend", None)


def _elsewhere(pod: MutableMapping[str, Any], nodes: tuple[str, ...]) -> None:
    """Exclude these nodes, whatever labels they have; an existing affinity stays in force."""
    if not nodes:
        return
    bound = pod.get("nodeName") or (pod.get("nodeSelector") or {}).get("kubernetes.io/hostname")
    if bound in nodes:
        raise ManifestError(f"the Job is bound to {bound}, which is to be left out")
    pod.pop("nodeName", None)
    affinity = pod.get("affinity") or {}
    node = affinity.get("nodeAffinity") or {}
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    # One name in each: the API accepts only one, and all must hold. The terms are alternatives.
    without = [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in nodes]
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*(term.get("matchFields") or []), *without]} for term in terms
    ]
    pod["affinity"] = affinity | {"nodeAffinity": node | {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _changed(
    spec: MutableMapping[str, Any], pod: Mapping[str, Any], changes: Mapping[str, Any], killed: str | None
) -> None:
    limit, memory = _whole(changes.get("time_limit_s")), _whole(changes.get("memory_bytes"))
    if limit and spec.get("activeDeadlineSeconds") is not None:
        spec["activeDeadlineSeconds"] = max(limit, spec["activeDeadlineSeconds"])
    if memory:
        _more_memory(pod, memory, _whole(spec.get("parallelism")) or 1, killed)


def _more_memory(pod: Mapping[str, Any], wanted: int, pods: int, killed: str | None) -> None:
    """Give the increase to the container that was killed, else to the one with the largest request."""
    limits = {}
    for one in pod.get("containers") or ():
        given = (one.get("resources") or {}).get("limits") or {}
        if (now := quantity(given.get("memory"))) is not None:
            limits[one["name"]] = (one["resources"], now)
    total = sum(now for _, now in limits.values())
    if total == 0:
        raise ManifestError("more memory is asked for, and no container of the Job has a memory limit")
    if wanted > pods * total and pods > 1:  # more than all pods have: the total of all pods
        wanted = -(-wanted // pods)
    if wanted > MEMORY_MOST * total:
        raise ManifestError(
            f"{wanted} bytes of memory are asked for, more than {MEMORY_MOST:g} times the limit of {total}"
        )
    more = wanted - total
    if more <= 0:
        return
    resources, now = limits.get(killed or "") or max(limits.values(), key=lambda entry: entry[1])
    requests = resources.get("requests") or {}
    fresh = str(now + more)
    if quantity(requests.get("memory")) == now:
        resources["requests"] = {**requests, "memory": fresh}
    resources["limits"] = {**resources["limits"], "memory": fresh}


def _variables(pod: Mapping[str, Any], request: Request) -> None:
    """Set environment variables for the program: where to resume, and by how much to reduce the batch size."""
    variables = {}
    if request.resume_from is not None:
        variables[RESUME_VARIABLE] = request.resume_from
    if "batch_factor" in request.changes:
        variables[BATCH_VARIABLE] = str(request.changes["batch_factor"])
    for one in pod.get("containers") or () if variables else ():
        kept = [entry for entry in one.get("env") or () if entry.get("name") not in variables]
        one["env"] = [*kept, *({"name": name, "value": value} for name, value in variables.items())]


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
