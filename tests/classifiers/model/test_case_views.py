from classifiers.data import labelled_cases
from classifiers.model.windows import cut


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


def test_the_whole_comes_first_and_each_window_once() -> None:
    windows = list(cut(case(TEXT, "KeyError: 'x'"), most=9))
    names = [one.name for one in windows]
    assert names[0] == "whole"
    assert len(set(names)) == len(names)
    alone = next(one for one in windows if one.name == "first error alone")
    assert alone.raw.streams[0].text == "KeyError: 'x'"
    rank = next(one for one in windows if one.name == "one rank alone")
    assert [one.rank for one in rank.raw.streams] == [1]
    bare = next(one for one in windows if one.name == "without words of the scheduler")
    assert (bare.raw.job.exit_code, bare.raw.job.gpus) == (None, None)


def test_windows_without_the_failing_line_teach_less() -> None:
    weights = {one.name: one.weight for one in cut(case(TEXT, "KeyError: 'x'"), most=9)}
    assert weights["launcher alone"] < weights["one rank alone"]


def test_the_same_case_gives_the_same_windows() -> None:
    assert list(cut(case(TEXT, "KeyError: 'x'"))) == list(cut(case(TEXT, "KeyError: 'x'")))


def test_no_more_windows_than_asked() -> None:
    assert len(list(cut(case(TEXT, None), most=2))) <= 2
