from classifiers.extraction.tracebacks import exception_type, follow, mark_chains

CHAINED = """Traceback (most recent call last):
  File "a.py", line 1, in load
    return table[name]
KeyError: 'lr'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "b.py", line 9, in main
    load()
ValueError: no learning rate
"""


def test_a_traceback_ends_in_its_exception() -> None:
    trace = follow(CHAINED, 0, CHAINED.split("\n", 1)[0])
    assert trace is not None
    assert (trace.text, trace.type) == ("KeyError: 'lr'", "KeyError")
    assert trace.frame == 'File "a.py", line 1, in load'


def test_the_second_of_a_chain_is_marked() -> None:
    head = "Traceback (most recent call last):"
    found = [follow(CHAINED, CHAINED.find(head), head), follow(CHAINED, CHAINED.rfind(head), head)]
    chain = mark_chains(CHAINED, [one for one in found if one is not None])
    assert [one.chained for one in chain] == [False, True]


def test_ranks_that_speak_at_once_are_kept_apart() -> None:
    text = (
        "[rank1]: Traceback (most recent call last):\n"
        "[rank0]: Traceback (most recent call last):\n"
        '[rank1]:   File "a.py", line 1, in f\n'
        '[rank0]:   File "b.py", line 2, in g\n'
        "[rank0]:     g()\n"
        "[rank0]: ValueError: of zero\n"
        "[rank1]: KeyError: 'of one'\n"
    )
    first = follow(text, 0, text.split("\n", maxsplit=1)[0])
    second = follow(text, text.find("[rank0]"), text.split("\n")[1])
    assert first is not None
    assert second is not None
    assert first.text == "[rank1]: KeyError: 'of one'"
    assert second.text == "[rank0]: ValueError: of zero"


def test_a_cut_traceback_has_no_end() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    f()'
    assert follow(text, 0, text.split("\n", maxsplit=1)[0]) is None


def test_exceptions_are_told_by_their_class() -> None:
    assert exception_type("torch.distributed.DistBackendError: NCCL error in: x.cpp:1970") == "DistBackendError"
    assert exception_type("ray.exceptions.RayTaskError(ValueError): ray::f()") == "RayTaskError"
    assert exception_type("no error here") is None
