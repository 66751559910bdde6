"""GET /search: one box for jobs, nodes, users, kinds of failure and words of the log; GET /mine: one's own failures."""

import re
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter
from fastapi.responses import RedirectResponse

from classifiers import taxonomy
from service.groups.records import GroupFilter
from service.headlines.headline import headline
from service.web import views
from service.web.auth import OWN, Principal
from service.web.pages.forms import Text, redirect
from service.web.pages.templating import path, query
from service.web.services import InjectedServices, Services
from service.web.views import FailureQuery

router = APIRouter()
_FINGERPRINT = re.compile(r"v?\d{1,3}:[0-9a-z]{1,64}")
_COPIED = re.compile(r"(\S{1,200}) / (\S{1,200})")
_GROUP = re.compile(r"group ([0-9]{1,15})", re.ASCII | re.IGNORECASE)
_JOB = re.compile(r"job (\S{1,200})", re.IGNORECASE)
_INCIDENT = re.compile(r"[Ii]-([0-9]{1,15})", re.ASCII)
# What a text is looked up as, in this order; words of the log last.
_EXACT = ("job", "node", "user", "group")
_WORDS = range(2, 7)  # of a text in which one word may be a user or a node
_GROUPS = 200  # whose headlines are compared, those with the latest failures


@router.get("/search")
def search(
    services: InjectedServices,
    reader: Annotated[Principal, OWN],
    q: Text = None,
    since: Text = None,
    until: Text = None,
) -> RedirectResponse:
    """Redirect to what the text names: a failure, a node, or a list with a filter."""
    wanted, cluster = job_and_cluster((q or "").strip()[:200])
    times = {"since": since, "until": until}
    if not wanted:
        return redirect(f"/failures{query(times)}")
    incident = _INCIDENT.fullmatch(wanted)
    if incident is not None and reader.may("read"):
        return redirect(f"/incidents/{incident[1]}")
    group = _GROUP.fullmatch(wanted)
    if group is not None and reader.may("read"):
        return redirect(f"/groups/{group[1]}")
    with services.snapshot() as snapshot:
        found = named(snapshot, reader, wanted, times) if cluster is None else of_job(snapshot, cluster, wanted)
        if found is None and not views.failures(snapshot, FailureQuery({"q": wanted}), limit=1).items:
            found = words_of_pages(snapshot, reader, wanted, times)
    return redirect(found or f"/failures{query(times, {'q': wanted})}")


def words_of_pages(services: Services, reader: Principal, wanted: str, times: Mapping[str, str | None]) -> str | None:
    """The address of what a text names that no log contains: `job 7`, two filters, a cause, or a group's headline."""
    job = _JOB.fullmatch(wanted)
    if job is not None and (found := named(services, reader, job[1], times)) is not None:
        return found
    filters = one_word_as_filter(services, wanted) or cause_as_filter(wanted)
    if filters is not None:
        return f"/failures{query(times, filters)}"
    return group_with_headline(services, wanted) if reader.may("read") else None


def cause_as_filter(wanted: str) -> dict[str, str] | None:
    """The filter of the cause with this code or title, in capitals or not."""
    text = wanted.casefold()
    causes = taxonomy.load().causes.values()
    found = next((one.code for one in causes if text in (one.code.casefold(), one.title.casefold())), None)
    return None if found is None else {"cause": found}


def group_with_headline(services: Services, wanted: str) -> str | None:
    """The address of the group that failed last of those whose headline on pages has these words, or is their begin."""
    text = wanted.casefold()
    with services.reading() as reading:
        rows = reading.groups.page(GroupFilter(), limit=_GROUPS).items
    for row in rows:
        shown = headline(row.title, own=services.own_titles()).casefold()
        if shown and (text in shown or text.startswith(f"{shown} on ")):
            return f"/groups/{row.id}"
    return None


def named(services: Services, reader: Principal, wanted: str, times: Mapping[str, str | None]) -> str | None:
    """The address of the job, node, user or group that a text names; None if it names none.

    The lists of a user and of a group keep the period of the page; a job is found whenever it ended.
    """
    for name in _EXACT:
        if name == "group" and not _FINGERPRINT.fullmatch(wanted):
            continue
        if name == "node" and reader.may("read") and (found := node_page(services, wanted)) is not None:
            return found
        rows = views.failures(services, FailureQuery({name: wanted}), limit=2).items
        if name == "job" and len(rows) == 1:
            return f"/failures/{rows[0].id}"
        if rows:
            return f"/failures{query({} if name == 'job' else times, {name: wanted})}"
    return f"/failures{query(job=wanted)}" if views.job_ended(services, wanted) else None


def job_and_cluster(text: str) -> tuple[str, str | None]:
    """The text to look up, and the cluster before it if it is copied from a page: "orion / 884120"."""
    found = _COPIED.fullmatch(text)
    return (text, None) if found is None else (found[2], found[1])


def of_job(services: Services, cluster: str, job_id: str) -> str:
    """The address of the only failure of a job, or of the list of its failures, which says how the job ended."""
    filters = {"job": job_id, "cluster": cluster}
    rows = views.failures(services, FailureQuery(filters), limit=2).items
    return f"/failures/{rows[0].id}" if len(rows) == 1 else f"/failures{query(filters)}"


def one_word_as_filter(services: Services, wanted: str) -> dict[str, str] | None:
    """A text of several words that no log contains: one of them as user or node if failures match the other words."""
    words = wanted.split()
    if len(words) not in _WORDS:
        return None
    for at, word in enumerate(words):
        others = " ".join(words[:at] + words[at + 1 :])
        for name in ("user", "node"):
            filters = {name: word, "q": others}
            if views.failures(services, FailureQuery(filters), limit=1).items:
                return filters
    return None


@router.get("/mine")
def mine(reader: Annotated[Principal, OWN]) -> RedirectResponse:
    """Redirect to the caller's own failures; who may see only these has them as the whole list.

    Of several names under which the caller's jobs run, the list shows those of the first.
    """
    if reader.visible is not None:
        return redirect("/failures")
    cluster, user = next(iter(reader.users), (None, reader.name))
    return redirect(f"/failures{query(user=user, cluster=cluster)}")


def node_page(services: Services, name: str) -> str | None:
    """The address of a node's page; None if its name is unknown, or several clusters have such a node."""
    with services.reading() as reading:
        wanted = [(cluster, name) for cluster in reading.suspicion.clusters()]
        clusters = [cluster for cluster, _ in reading.suspicion.rows(wanted)] if wanted else []
    return f"/nodes/{quote(clusters[0], safe='')}/{path(name)}" if len(clusters) == 1 else None
