import random
import threading
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from service.backoff import Backoff
from service.kubernetes.errors import AnswerTooLarge, ClusterUnavailable, VersionExpired
from service.kubernetes.paths import Object
from service.watch import reflector
from service.watch.reflector import Collection, follow
from tests.service.watch.objects import pod, with_version

PODS = Collection("Pod", "v1", "pods", "ml", "team=vision")


class Scripted:
    """A cluster that answers what it is told to; an exception is raised."""

    def __init__(self, lists: list[Any], watches: list[Any]) -> None:
        self.lists, self.watches = lists, watches
        self.asked: list[Mapping[str, Any]] = []

    def get(self, path: str, query: dict[str, Any] | None = None) -> Object:
        assert path == "/api/v1/namespaces/ml/pods"
        self.asked.append(dict(query or {}))
        return dict(given(self.lists.pop(0)))

    def watch(self, path: str, query: dict[str, Any], *, silence_s: float) -> Iterator[Object]:
        assert path == "/api/v1/namespaces/ml/pods"
        assert silence_s > reflector.WATCH_S
        self.asked.append(query)
        script = self.watches.pop(0) if self.watches else [VersionExpired("no more")]
        for one in given(script):
            yield given(one)


def given(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


class Now(threading.Event):
    """Never waits."""

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        return self.is_set()


def page(version: str, *pods: Object, more: str | None = None) -> Object:
    items = [{key: value for key, value in one.items() if key != "kind"} for one in pods]
    return {"items": items, "metadata": {"resourceVersion": version, "continue": more}}


def change(kind: str, obj: Object, version: str) -> Object:
    return {"type": kind, "object": with_version(obj, version)}


def seen(api: Scripted, count: int, version: str | None = None) -> list[tuple[str, str | None]]:
    backoff = Backoff(chance=random.Random(1))
    return [(one.what, one.version) for one in islice(follow(api, PODS, version, Now(), backoff), count)]


def test_a_list_is_read_page_by_page_and_the_watch_continues_from_it() -> None:
    api = Scripted([page("9", pod("a"), more="x"), page("9", pod("b"))], [[change("MODIFIED", pod("a"), "10")]])
    assert seen(api, 5) == [
        ("list_begins", None),
        ("listed", None),
        ("listed", None),
        ("all_listed", "9"),
        ("changed", "10"),
    ]
    assert [one.get("continue") for one in api.asked[:2]] == [None, "x"]
    assert all(one["labelSelector"] == "team=vision" for one in api.asked)
    assert api.asked[2]["resourceVersion"] == "9"


def test_the_entries_of_a_list_get_their_kind() -> None:
    [_, first] = islice(follow(Scripted([page("9", pod("a"))], []), PODS, None, Now()), 2)
    assert (first.object["kind"], first.object["apiVersion"]) == ("Pod", "v1")


def test_it_continues_from_its_position_without_a_list() -> None:
    api = Scripted([], [[change("DELETED", pod("a"), "31"), change("BOOKMARK", {"metadata": {}}, "40")], []])
    assert seen(api, 2, "30") == [("deleted", "31"), ("bookmark", "40")]
    api = Scripted([], [[change("BOOKMARK", {"metadata": {}}, "40")], [change("ADDED", pod("b"), "41")]])
    assert seen(api, 2, "30")[1] == ("changed", "41")
    assert api.asked[1]["resourceVersion"] == "40"


def test_history_that_was_removed_causes_a_new_list() -> None:
    api = Scripted([page("50", pod("a"))], [VersionExpired("too old"), [change("ADDED", pod("b"), "51")]])
    assert [what for what, _ in seen(api, 4, "30")] == ["list_begins", "listed", "all_listed", "changed"]


def test_a_list_that_breaks_off_begins_again() -> None:
    api = Scripted([page("9", pod("a"), more="x"), VersionExpired("the token is too old"), page("12", pod("a"))], [])
    assert [what for what, _ in seen(api, 5)] == ["list_begins", "listed", "list_begins", "listed", "all_listed"]


def test_a_page_of_large_objects_that_is_refused_is_asked_for_in_parts() -> None:
    """Otherwise the list would never end, and no end of a job would be reported."""
    large = AnswerTooLarge("more than 67108864 bytes")
    api = Scripted([page("9", pod("a"), more="x"), large, page("9", pod("b"), more="y"), page("9", pod("c"))], [])
    whats = ["list_begins", "listed", "listed", "listed", "all_listed"]
    assert [what for what, _ in seen(api, 5)] == whats
    assert [one["continue"] for one in api.asked[1:4]] == ["x", "x", "y"]
    sizes = [one["limit"] for one in api.asked[:4]]
    assert sizes[0] == sizes[1] > sizes[2] == sizes[3]


def test_one_object_that_is_too_large_is_waited_for() -> None:
    large = AnswerTooLarge("more than 67108864 bytes")
    api = Scripted([*[large] * 10, page("9", pod("a"))], [])
    assert [what for what, _ in seen(api, 5)] == ["list_begins"] * 3 + ["listed", "all_listed"]


def test_an_api_server_that_is_away_is_waited_for() -> None:
    away = ClusterUnavailable("connection refused")
    api = Scripted(
        [away, away, page("9")], [[change("ADDED", pod("a"), "10"), away], [change("ADDED", pod("b"), "11")]]
    )
    assert seen(api, 6)[-3:] == [("all_listed", "9"), ("changed", "10"), ("changed", "11")]
    assert api.asked[-1]["resourceVersion"] == "10"


def test_it_ends_when_asked_to() -> None:
    stop = Now()
    stop.set()
    assert list(follow(Scripted([], []), PODS, None, stop)) == []


def test_another_selection_is_another_collection() -> None:
    names = {
        Collection("Pod", "v1", "pods").name,
        PODS.name,
        Collection("Pod", "v1", "pods", "ml").name,
        Collection("Pod", "v1", "pods", fields="a=b").name,
    }
    assert len(names) == 4
