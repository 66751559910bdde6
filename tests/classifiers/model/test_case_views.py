from classifiers.data import labelled_cases
from classifiers.model.case_views import views_of


def case(text: str, root: str | None) -> labelled_cases.LabelledCase:
    labels = {"side": "user", "cause": "USER.1", "category": "GC.3", "symptom": "none", "retry": "futile"}
    return labelled_cases.parse(
        {
            "id": "a",
            "group": "g",
            "kind": "k",
            "event": {
                "status": "failed",
                "exit_code": 1,
                "gpus": 8,
                "logs": [
                    {"rank": 1, "tail": text},
                    {"rank": 0, "tail": "waiting\n"},
                    {"rank": None, "tail": "task 1 failed"},
                ],
            },
            "labels": {**labels, "root_rank": 1, "root_line": root},
            "provenance": {"origin": "captured"},
        },
        "x",
    )


TEXT = "".join(f"step {number}\n" for number in range(30)) + "KeyError: 'x'\nafter\nmore\n"


def test_the_whole_comes_first_and_each_view_once() -> None:
    views = list(views_of(case(TEXT, "KeyError: 'x'"), limit=9))
    names = [one.name for one in views]
    assert names[0] == "whole"
    assert len(set(names)) == len(names)
    alone = next(one for one in views if one.name == "first error alone")
    assert alone.raw.streams[0].text == "KeyError: 'x'"
    rank = next(one for one in views if one.name == "one rank alone")
    assert [one.rank for one in rank.raw.streams] == [1]
    bare = next(one for one in views if one.name == "without scheduler facts")
    assert (bare.raw.job.exit_code, bare.raw.job.gpus) == (None, None)


def test_views_without_the_failing_line_have_less_weight() -> None:
    weights = {one.name: one.weight for one in views_of(case(TEXT, "KeyError: 'x'"), limit=9)}
    assert weights["launcher alone"] < weights["one rank alone"]


def test_the_same_case_gives_the_same_views() -> None:
    assert list(views_of(case(TEXT, "KeyError: 'x'"))) == list(views_of(case(TEXT, "KeyError: 'x'")))


def test_no_more_views_than_asked() -> None:
    assert len(list(views_of(case(TEXT, None), limit=2))) <= 2
