"""Measures a second reader on labelled cases: questions to send, and the gain and cost of recorded answers."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from classifiers.contracts import Verdict
from classifiers.data.labelled_cases import LabelledCase, json_lines
from classifiers.evaluation.metrics import has_certain_label
from service.errors import InvalidInput
from service.second_reader.opinion import InvalidAnswer, Opinion, parse
from service.second_reader.question import Question, is_doubtful, question, response_format

SCHEMA: Final = "faultline-second-reader/1"


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The text of an answer and the tokens that it cost."""

    content: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Gain:
    """What a second reader changes on labelled cases. Shares are not numbers where nothing is counted.

    Attributes:
        kinds: kinds that were asked about.
        invalid: answers that do not follow the schema.
        missing: kinds without an answer.
        doubtful: labelled cases of all kinds asked about.
        settled: those on which the reader has an opinion.
        side_right, cause_right: share of the settled on which the reader is right.
        guess_right: share of the settled on which the classifier's best guess of the side is right.
        answered, right_when_answered: of all labelled cases, without the reader.
        answered_with, right_when_answered_with: the same if its opinions counted as answers.
        prompt_tokens, completion_tokens: of all answers.
    """

    kinds: int
    invalid: int
    missing: int
    doubtful: int
    settled: int
    side_right: float
    cause_right: float
    guess_right: float
    answered: float
    right_when_answered: float
    answered_with: float
    right_when_answered_with: float
    prompt_tokens: int
    completion_tokens: int


def questions(cases: Sequence[LabelledCase], verdicts: Sequence[Verdict]) -> dict[str, Question]:
    """The question for the first doubtful case of each kind, by the id of the case."""
    found: dict[str, Question] = {}
    seen: set[str] = set()
    for case, verdict in zip(cases, verdicts, strict=True):
        if is_doubtful(verdict) and verdict.fingerprint not in seen:
            seen.add(verdict.fingerprint)
            found[case.id] = question(verdict, case.raw.job)
    return found


def export(by_case: Mapping[str, Question]) -> bytes:
    """One JSON object a line: case, messages, response_format."""
    rows = (
        {"schema": SCHEMA, "case": case_id, "messages": list(one.messages), "response_format": response_format(one)}
        for case_id, one in by_case.items()
    )
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def read_answers(lines: Iterable[bytes], name: str) -> dict[str, RecordedAnswer]:
    """The recorded answers of the lines of a file: case, content, and usage (prompt_tokens, completion_tokens).

    Raises:
        InvalidInput: a line is not as described; the message names it.
        DatasetError: a line is not JSON.
    """
    found: dict[str, RecordedAnswer] = {}
    for place, raw in json_lines(lines, name):
        if not isinstance(raw, dict) or not isinstance(raw.get("case"), str):
            raise InvalidInput(f"{place}: case: expected a text")
        if not isinstance(raw.get("content"), str):
            raise InvalidInput(f"{place}: content: expected a text")
        usage = raw.get("usage") if isinstance(raw.get("usage"), dict) else {}
        found[raw["case"]] = RecordedAnswer(
            raw["content"], _tokens(usage, "prompt_tokens"), _tokens(usage, "completion_tokens")
        )
    return found


def _tokens(usage: Any, name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and value >= 0 else 0


def gain(cases: Sequence[LabelledCase], verdicts: Sequence[Verdict], answers: Mapping[str, RecordedAnswer]) -> Gain:
    """Score recorded answers: the answer for the first case of a kind stands for all its doubtful cases."""
    by_case = questions(cases, verdicts)
    opinions: dict[str, Opinion] = {}
    invalid = 0
    for case_id, one in by_case.items():
        if case_id in answers:
            try:
                opinions[one.fingerprint] = parse(answers[case_id].content, one)
            except InvalidAnswer:
                invalid += 1
    labelled = [pair for pair in zip(cases, verdicts, strict=True) if has_certain_label(pair[0], "side")]
    doubtful = [(case, verdict) for case, verdict in labelled if is_doubtful(verdict)]
    settled = [
        (case, verdict, opinion)
        for case, verdict in doubtful
        if (opinion := opinions.get(verdict.fingerprint)) is not None and opinion.side is not None
    ]
    sure = [_is_right(case, verdict.side) for case, verdict in labelled if not verdict.abstained]
    of_reader = [_is_right(case, opinion.side) for case, _, opinion in settled]
    added = [_is_right(case, opinion.side) for case, verdict, opinion in settled if verdict.abstained]
    used = [answers[case_id] for case_id in by_case if case_id in answers]
    return Gain(
        kinds=len(by_case),
        invalid=invalid,
        missing=len(by_case) - len(used),
        doubtful=len(doubtful),
        settled=len(settled),
        side_right=_share(of_reader),
        cause_right=_share(
            [opinion.cause in case.labels.allowed["cause"] for case, _, opinion in settled if case.labels.best["cause"]]
        ),
        guess_right=_share([_is_right(case, verdict.side) for case, verdict, _ in settled]),
        answered=len(sure) / len(labelled) if labelled else float("nan"),
        right_when_answered=_share(sure),
        answered_with=(len(sure) + len(added)) / len(labelled) if labelled else float("nan"),
        right_when_answered_with=_share([*sure, *added]),
        prompt_tokens=sum(one.prompt_tokens for one in used),
        completion_tokens=sum(one.completion_tokens for one in used),
    )


def _is_right(case: LabelledCase, side: str | None) -> bool:
    return side in case.labels.allowed["side"]


def _share(right: Sequence[bool]) -> float:
    return sum(right) / len(right) if right else float("nan")


def text(found: Gain) -> str:
    """The gain as a plain table."""
    rows = [
        ("kinds asked about", str(found.kinds)),
        ("answers that do not follow the schema", str(found.invalid)),
        ("kinds without an answer", str(found.missing)),
        ("labelled cases of these kinds", str(found.doubtful)),
        ("settled by the second reader", str(found.settled)),
        ("side right where settled: second reader", _number(found.side_right)),
        ("side right where settled: best guess of the classifier", _number(found.guess_right)),
        ("cause right where settled: second reader", _number(found.cause_right)),
        ("answered, without and with it", f"{_number(found.answered)} -> {_number(found.answered_with)}"),
        (
            "side right when answered, without and with it",
            f"{_number(found.right_when_answered)} -> {_number(found.right_when_answered_with)}",
        ),
        ("tokens of questions, of answers", f"{found.prompt_tokens}, {found.completion_tokens}"),
    ]
    return "\n".join(f"{name:56s}{value:>18s}" for name, value in rows)


def _number(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"  # noqa: PLR0124 - not a number
