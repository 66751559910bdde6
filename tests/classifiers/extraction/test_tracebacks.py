from functools import partial

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.line_headers import parse_header
from classifiers.extraction.tracebacks import exception_type, mark_chains, parse_traceback
from tests.classifiers.packaged_catalogue import EXTRACTOR

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
    found = parse_traceback(CHAINED, 0, CHAINED.split("\n", 1)[0])
    assert found is not None
    assert (found.final_line, found.exception) == ("KeyError: 'lr'", "KeyError")
    assert found.raised_at == "load: return table[name]"


def test_the_second_of_a_chain_is_marked() -> None:
    head = "Traceback (most recent call last):"
    found = [parse_traceback(CHAINED, CHAINED.find(head), head), parse_traceback(CHAINED, CHAINED.rfind(head), head)]
    chain = mark_chains(CHAINED, [one for one in found if one is not None])
    assert [one.chained for one in chain] == [False, True]


def test_a_prefix_of_no_known_form_before_every_line_is_left_out() -> None:
    text = "".join(
        f"r03c3n2: {line}\n"
        for line in ("Traceback (most recent call last):", '  File "a.py", line 1, in f', "    f()", "KeyError: 'x'")
    )
    found = parse_traceback(text, 0, text.split("\n", 1)[0])
    assert found is not None
    assert (found.final_line, found.exception) == ("r03c3n2: KeyError: 'x'", "KeyError")


def test_interleaved_tracebacks_of_two_ranks_are_separated() -> None:
    text = (
        "[rank1]: Traceback (most recent call last):\n"
        "[rank0]: Traceback (most recent call last):\n"
        '[rank1]:   File "a.py", line 1, in f\n'
        '[rank0]:   File "b.py", line 2, in g\n'
        "[rank0]:     g()\n"
        "[rank0]: ValueError: of zero\n"
        "[rank1]: KeyError: 'of one'\n"
    )
    first = parse_traceback(text, 0, text.split("\n", maxsplit=1)[0])
    second = parse_traceback(text, text.find("[rank0]"), text.split("\n")[1])
    assert first is not None
    assert second is not None
    assert first.final_line == "[rank1]: KeyError: 'of one'"
    assert second.final_line == "[rank0]: ValueError: of zero"


@pytest.mark.parametrize(
    "front", ["2026-11-21 10:22:14,000 ", "Nov 21 10:55:25 | ", "[1,1]<stderr>:", "[default1]:[rank1]: "]
)
def test_source_code_behind_a_time_or_a_tag_does_not_end_a_traceback(front: str) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "main.py", line 69, in <module>',
        "    sys.exit(main())",
        '  File "job.py", line 27, in main',
        "    Job().run(fault)",
        "OSError: [Errno 28] No space left on device",
    ]
    text = "\n".join(front + line for line in lines)
    found = parse_traceback(text, 0, front + lines[0])
    assert found is not None
    assert found.final_line == front + lines[-1]
    assert found.raised_at == "main: Job().run(fault)"


def test_a_traceback_without_its_final_line_is_none() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    f()'
    assert parse_traceback(text, 0, text.split("\n", maxsplit=1)[0]) is None


def test_exceptions_are_named_by_their_class() -> None:
    assert exception_type("torch.distributed.DistBackendError: NCCL error in: x.cpp:1970") == "DistBackendError"
    assert exception_type("ray.exceptions.RayTaskError(ValueError): ray::f()") == "RayTaskError"
    assert exception_type("no error here") is None


WRAPPER = "RuntimeError: engine core initialization failed:"
CAUSE = "ValueError: 7 heads cannot be split"


def beginnings(extractor: Extractor, log: str) -> list[str]:
    found = extractor.extract(RawCase(JobFacts("failed"), (LogStream(log),)))
    return [item.text.strip() for item in found.items if item.role == "initiating"]


@pytest.mark.parametrize(
    "front", ["", 'Traceback (most recent call last):\n  File "serve.py", line 3, in start\n    wait()\n']
)
@pytest.mark.parametrize("between", ["\n", "\n\n  "], ids=["next line", "empty line between"])
def test_an_exception_that_ends_in_a_colon_introduces_the_one_below_it(
    extractor: Extractor, front: str, between: str
) -> None:
    assert beginnings(extractor, f"{front}{WRAPPER}{between}{CAUSE}\n") == [CAUSE]


def test_an_exception_introduces_nothing_without_a_colon_or_with_other_words_between(extractor: Extractor) -> None:
    no_colon = WRAPPER.rstrip(":")
    assert beginnings(extractor, f"{no_colon}\n{CAUSE}\n") == [no_colon, CAUSE]
    assert beginnings(extractor, f"{WRAPPER}\nstopping all engines\n{CAUSE}\n") == [WRAPPER, CAUSE]


@pytest.mark.parametrize("stamp", ["2026-11-24 10:00:{:02d} ", "Nov 24 10:00:{:02d} ", "[2026-11-24T10:00:{:02d}Z] "])
def test_a_traceback_whose_lines_have_different_times_is_one(stamp: str) -> None:
    lines = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', "    f(", "    )", CAUSE]
    text = "\n".join(stamp.format(number // 2) + line for number, line in enumerate(lines))
    found = parse_traceback(text, 0, text.split("\n", maxsplit=1)[0])
    assert found is not None
    assert found.final_line.endswith(CAUSE)


def test_a_logger_of_another_program_may_stand_before_each_line_of_a_traceback() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "train.py", line 210, in <module>',
        "    main()",
        "RuntimeError: shape '[8, 512, -1]' is invalid",
    ]
    text = "".join(f"2: 2026-11-28 10:01:11 | INFO | {line}\n" for line in lines)
    found = parse_traceback(text, 0, text.partition("\n")[0], parse=partial(parse_header, labelled=True))
    assert found is not None
    assert (found.exception, found.raised_at) == ("RuntimeError", "<module>: main()")


# As loguru prints it with `diagnose=True`.
WITH_VALUES = """2026-11-20 10:21:00.142 | ERROR    | __main__:<module>:9 - An error has been caught in function 'main':
Traceback (most recent call last):

  File "/opt/lib/python3.11/site-packages/hub/pool.py", line 40, in send
    raise ReadTimeout(err, request=request)
          │           │            └ <Request [GET]>
          │           └ ReadTimeoutError("timed out")
          └ <class 'hub.exceptions.ReadTimeout'>

hub.exceptions.ReadTimeout: HTTPConnectionPool(host='hub.example', port=70): Read timed out. (read timeout=3)


The above exception was the direct cause of the following exception:


Traceback (most recent call last):

> File "/home/ana/job.py", line 9, in <module>
    main()
    └ <function main at 0x7ff998fe6f20>

  File "/home/ana/job.py", line 5, in main
    raise RuntimeError(f"part {i} is not there") from err
                               │                      └ ReadTimeout("timed out")
                               └ 2

RuntimeError: part 2 is not there
"""


def test_values_below_source_lines_are_no_evidence_and_the_exception_that_another_was_raised_from_leads() -> None:
    raw = RawCase(JobFacts(status="failed"), (LogStream(WITH_VALUES, rank=0),))
    found = [(item.role, item.text.split(":")[0]) for item in EXTRACTOR.extract(raw).items if item.exception]
    assert found == [("initiating", "hub.exceptions.ReadTimeout"), ("cascade", "RuntimeError")]
