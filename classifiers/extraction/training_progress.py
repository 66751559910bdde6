"""Progress of a run: the last step and the last checkpoint that its logs show."""

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median
from typing import Final

from classifiers.contracts import Progress
from classifiers.extraction.line_headers import time_of

# After the number: a unit, or the job step in a message of Slurm ("STEP 888244.0 ON gpu024 CANCELLED").
_OTHER_THAN_STEP: Final = (
    r"[\d.]{0,20}\s{0,8}(?:ms|s(?:/|ec|\b)|it/s|GB|GiB|MB)|\d{0,12}\.\d{1,6} on \S{1,200} cancelled"
)
_STEP: Final = re.compile(
    r"(?i)(?:(?<!skipped )(?<!nan )\b(?:global[_ ]?)?(?:step|iteration|iter|update|batch)s?[\"']?"
    r"\s{0,8}[:=#\[(]{0,2}\s{0,8}"
    r"|num_updates\s{1,8})"
    r"(?P<step>\d{1,12})(?!" + _OTHER_THAN_STEP + ")"
)
_STEP_AT: Final = re.compile(
    r"(?i)(?:step|iteration|iter|update|batch)s?[\"']?\s{0,8}[:=#\[(]{0,2}\s{0,8}(?P<step>\d{1,12})"
    r"(?!" + _OTHER_THAN_STEP + ")"
)
_LINE_TIME: Final = re.compile(r"[\[({]?(?P<at>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:\d\d)?)")
_WORDS: Final = ("step", "iter", "update", "batch")
_BEFORE_WORD: Final = (0, len("num_"), len("global"), len("global_"))  # characters of a match before the word
_OTHER_COUNTS: Final = ("skipped ", "nan ")  # of Megatron-LM: "number of skipped iterations"
_MOST_TRIES: Final = 8
_CHECKPOINT: Final = re.compile(
    r"(?i)(?:sav(?:ed|ing|e)|wrote|writing|stored?)\b[^\n]{0,60}?\b(?:checkpoint|model|state|ckpt)s?\b[^\n]{0,40}?"
    r"(?:\bto\b|\bat\b|\bin\b|:|=|->)\s{0,8}[\"'`]?(?P<path>[\w.:/@+-]{0,1000}[\w/]\.?[\w/-]{1,1000})"
)
_SAVED_WORDS: Final = ("saved model", "saving model", "saving state")
SAVING: Final = ("ckpt", "checkpoint", *_SAVED_WORDS)
# Limits of what is read, in characters (judgement).
_END_LENGTH: Final = 65_536
_NEAR_LENGTH: Final = 2_000
# Judgement: a log of so many characters is short; so few lines that name steps show progress in it.
SHORT_LOG: Final = 6_000
_FEWEST_IN_SHORT_LOG: Final = 2
_LINE_RANGE: Final = 500
# The count and the rate of a progress bar of tqdm.
_BAR: Final = re.compile(r"\b(?P<count>\d{1,12})/\d{1,12} \[")
# The duration of a step as programs print it, in a line with a time of its own.
_DURATION: Final = re.compile(
    r"(?i)\b(?:(?:step|iter(?:ation)?|batch)[ _]?time|time(?:(?:[ _]per[ _]|/)(?:step|it(?:er\w*)?|batch))?"
    r"|elapsed time per iteration \(ms\)|s(?:ec(?:onds)?)?(?:/| per )(?:step|it(?:er\w*)?|batch))"
    r"[\"']?(?: ?\((?:ms|s|sec(?:onds)?)\))?\s{0,2}[:=]?\s{0,2}(?P<value>\d{1,7}(?:\.\d{1,6})?)"
)
# How much a run does in a second, as programs print it: the name before the value, or behind it.
_WORK_PER_S: Final = re.compile(
    r"(?i)(?<![\w/])(?P<name>(?:(?:curr|running_?avg)?(?:steps?|iter(?:ation)?s?|it|batch(?:es)?|updates?|samples?|examples?|sentences"
    r"|seqs?|sequences"
    r"|im(?:a?ge?)?s?|frames?|tok(?:en)?s?|words?)(?:/s(?:ec(?:ond)?)?|_?per_?s(?:ec(?:ond)?)?)(?:/(?:gpu|dev(?:ice)?))?"
    r"|ups|fps|throughput|bus_?bw))[\"']?(?: ?[:=] ?| is | )(?P<value>\d{1,9}(?:\.\d{1,6})?)(?![\w/])"
    r"|(?<![\w.])(?P<first>\d{1,9}(?:\.\d{1,6})?) ?(?P<unit>(?:steps?|iters?|it|batch(?:es)?|samples?|examples?|seqs?"
    r"|im(?:a?ge?)?s?|frames?|tok(?:en)?s?|words?)/s(?:ec(?:ond)?)?(?:/gpu)?)\b(?! ?[:=]? ?\d)"
)
_WORK_WORDS: Final = ("/s", "ps=", "ps ", "ps:", "er_s", "erS", "hroughput", "usbw", "us_bw")
_RATE: Final = re.compile(r"\b(?P<value>\d{1,9}(?:\.\d{1,6})?) ?(?P<unit>s/it|it/s)\b")
# What a program says when it gives each step more work: a greater size, or more layers to train.
_MORE_WORK: Final = re.compile(
    r"(?i)\b(?:seq(?:uence)?|context|batch|micro-?batch|resolution|image|crop|frames?|max_?len(?:gth)?|accum\w*)\b"
    r"[^\n\d]{0,40}(?P<before>\d{1,9}(?:\.\d{1,4})?)[^\n\d]{0,6}(?:->|=>|\bto\b)[^\n\d]{0,6}(?P<after>\d{1,9}(?:\.\d{1,4})?)"
    r"|\bunfr(?:eez|oze)\w*\b"
)
_MORE_WORDS: Final = ("->", "=>", " to ", "nfreez", "nfroze")
# When a run counts as slowed down: so many steps before and since, the latter so many times slower (judgement).
_PACE_RANGE: Final = 262_144  # characters
_FEWEST_BEFORE: Final = 3
_MOST_BEFORE: Final = 20
_FEWEST_SINCE: Final = 3
_MUCH_SLOWER: Final = 3.0
_MUCH_LONGER: Final = 1.5  # than the slow steps: an interruption


def step_of(line: str) -> int | None:
    """The training step a line reports, None if none."""
    if not line.isascii():  # letters of other alphabets may match in lower case only
        steps = [found["step"] for found in _STEP.finditer(line, 0, _LINE_RANGE)]
        return int(steps[-1]) if steps else None
    low = line[:_LINE_RANGE].lower()
    last, step = -1, None
    for word in _WORDS:
        at = low.rfind(word)
        while at > last:
            found = _step_at(line, at)
            if found is not None:
                last, step = at, int(found["step"])
                break
            at = low.rfind(word, 0, at)
    return step


def last_step_time(text: str) -> float | None:
    """The time of the last line of a short log that names a step, None where fewer than two lines name one.

    A short log has too few lines for `progress_lines` to find by their shape.
    """
    if len(text) > SHORT_LOG:
        return None
    steps = [(step, line) for line in text.split("\n") if (step := step_of(line)) is not None]
    if len(steps) < _FEWEST_IN_SHORT_LOG or steps[-1][0] < steps[-2][0]:
        return None
    return time_of(steps[-1][1])


def _step_at(line: str, at: int) -> re.Match[str] | None:
    """The step that a line reports with the word at a place."""
    for before in _BEFORE_WORD:
        if at >= before and (found := _STEP.match(line, at - before, _LINE_RANGE)) is not None:
            return found
    return None


def _last_step(text: str, low: str, begin: int) -> tuple[int, int] | None:
    """The position and number of the last step in a text from `begin` on; `low` is that part in lower case."""
    best: tuple[int, int] | None = None
    for word in _WORDS:
        at = len(low)
        for _ in range(_MOST_TRIES):
            at = low.rfind(word, 0 if best is None else best[0], at)
            if at < 0:
                break
            found = _STEP_AT.match(text, begin + at)
            if found is not None and not low.endswith(_OTHER_COUNTS, 0, at):
                best = (at, int(found["step"]))
                break
    return None if best is None else (begin + best[0], best[1])


def _time_of_line(text: str, position: int) -> datetime | None:
    """The time at the beginning of the line at a position, in UTC if it names no zone; None without one."""
    found = _LINE_TIME.match(text, text.rfind("\n", 0, position) + 1)
    if found is None:
        return None
    try:
        at = datetime.fromisoformat(found["at"])
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def find_progress(texts: Sequence[str], landmarks: Sequence[AbstractSet[str]] | None = None) -> Progress | None:
    """The last step and checkpoint near the end of any of the texts, None if neither is shown.

    The time is that of the last step; None with a checkpoint, because the time of a checkpoint is not known.

    Args:
        texts: the logs; the last 65,536 characters of each are read.
        landmarks: of each log the landmarks that the scanner saw. Without one of `SAVING` no checkpoint is searched.
    """
    step: int | None = None
    checkpoint: str | None = None
    at: datetime | None = None
    for index, text in enumerate(texts):
        begin = max(0, len(text) - _END_LENGTH)
        saves = landmarks is None or not landmarks[index].isdisjoint(SAVING)
        found = None
        if text.isascii() and not saves:  # most logs: no more is read than the step needs
            near = max(begin, len(text) - _NEAR_LENGTH)
            found = _last_step(text, text[near:].lower(), near)
        if found is None:
            low = text[begin:].lower()
            if len(low) != len(text) - begin:
                continue  # some letters get longer in lower case: positions would not agree
            found = _last_step(text, low, begin)
            checkpoint = (_last_checkpoint(text, low, begin) if saves else None) or checkpoint
        if found is not None and (step is None or found[1] > step):
            step, at = found[1], _time_of_line(text, found[0])
    if step is None and checkpoint is None:
        return None
    return Progress(step=step, checkpoint=checkpoint, at=None if checkpoint else at)


def _last_checkpoint(text: str, low: str, begin: int) -> str | None:
    """The last path in a text from `begin` on to which a checkpoint was saved; `low` is that part in lower case."""
    if not ("ckpt" in low or "checkpoint" in low or ("sav" in low and any(word in low for word in _SAVED_WORDS))):
        return None
    paths = [found["path"] for found in _CHECKPOINT.finditer(text, begin)]
    return next((path for path in reversed(paths) if "/" in path or "." in path), None)


def slowed_since(text: str) -> float | None:
    """Since when steps took several times as long as before, in seconds into the year; None if they did not.

    Args:
        text: a log whose lines name steps and times.
    """
    found = _slow_series(text)
    if found is None:
        return None
    paces, number = found
    return paces[number + _is_interruption(paces, number)][0]


def _slow_series(text: str) -> tuple[Sequence[tuple[float, float]], int] | None:
    """The times and durations of steps that became several times as long, and the first long one; None without any.

    Looked for in the times of the lines that name a step, in the durations and in the rates that lines print; what
    shows it first counts.
    """
    series = ((paces, first_slow([pace for _, pace in paces])) for paces in _series(text))
    found = [(paces, number) for paces, number in series if number is not None]
    return min(found, key=lambda one: one[0][one[1]][0], default=None)


def _series(text: str) -> Iterator[Sequence[tuple[float, float]]]:
    yield _paces(text)
    yield _printed_durations(text)
    yield from _printed_rates(text)


def _is_interruption(paces: Sequence[tuple[float, float]], number: int) -> bool:
    """Whether the first slow step is none, but the time between the end of an attempt and the next one."""
    since = [pace for _, pace in paces[number + 1 :]]
    return len(since) >= _FEWEST_SINCE and paces[number][1] > _MUCH_LONGER * median(since)


def has_slowed(text: str) -> bool:
    """Whether the steps of a log took several times as long in the end as before, by its times or its printed rates."""
    return slowed_since(text) is not None or first_slow(_printed_paces(text)) is not None


def has_more_work(text: str) -> bool:
    """Whether a log says at the time when its steps became slower that each has more work from then on."""
    if not any(word in text for word in _MORE_WORDS):
        return False
    found = _slow_series(text)
    if found is None:
        return False
    paces, number = found
    begin, end = paces[number - 1][0], paces[min(number + 1, len(paces) - 1)][0]
    now = None
    for line in text[-_PACE_RANGE:].split("\n"):
        now = time_of(line) or now
        if now is not None and begin <= now <= end and _is_raised(line):
            return True
    return False


def raises_work(text: str) -> bool:
    """Whether any line of a log says that each step has more work from then on."""
    return any(word in text for word in _MORE_WORDS) and any(map(_is_raised, text.split("\n")))


def _is_raised(line: str) -> bool:
    found = _MORE_WORK.search(line, 0, _LINE_RANGE)
    return found is not None and (found["after"] is None or float(found["after"]) > float(found["before"]))


def first_slow(paces: Sequence[float]) -> int | None:
    """The place from which on all paces are several times the usual one before, None without one."""
    for number in range(_FEWEST_BEFORE, len(paces) - _FEWEST_SINCE + 1):
        before = paces[max(0, number - _MOST_BEFORE) : number]
        fastest = min(paces[number : number + _FEWEST_SINCE])
        if fastest < _MUCH_SLOWER * min(before):
            continue  # nor is it so much slower than the median
        usual = median(before)
        if fastest >= _MUCH_SLOWER * usual and median(paces[number:]) >= _MUCH_SLOWER * usual:
            return number
    return None


def _paces(text: str) -> list[tuple[float, float]]:
    """From when on each step took how many seconds, by the lines that name a step and a time, in order."""
    points: list[tuple[float, int]] = []
    for line in text[-_PACE_RANGE:].split("\n"):
        step = _step_or_count(line)
        time = time_of(line) if step is not None else None
        if step is not None and time is not None and (not points or (step > points[-1][1] and time >= points[-1][0])):
            points.append((time, step))
    return [(begin, (end - begin) / (later - step)) for (begin, step), (end, later) in pairwise(points) if end > begin]


def _step_or_count(line: str) -> int | None:
    """The training step that a line reports, or the count that a progress bar shows."""
    step = step_of(line)
    if step is None and "/" in line and (bar := _BAR.search(line, 0, _LINE_RANGE)) is not None:
        return int(bar["count"])
    return step


def _printed_durations(text: str) -> list[tuple[float, float]]:
    """When a line says how long its step took, and how long, in the unit of the log, in order."""
    if "time" not in text and "/step" not in text and "/it" not in text:
        return []
    found = ((time, duration_of(line)) for line, time in _timed_lines(text))
    return [(time, duration) for time, duration in found if duration is not None]


def duration_of(line: str) -> float | None:
    """How long the step of a line took, in the unit of the log, None where it does not say so."""
    found = _DURATION.search(line, 0, _LINE_RANGE)
    return None if found is None else float(found["value"])


def _timed_lines(text: str) -> Iterator[tuple[str, float]]:
    """The lines of a log with their times; a line without one has that of the line before, if that has one."""
    before = None
    for line in text[-_PACE_RANGE:].split("\n"):
        own = time_of(line)
        time = before if own is None else own
        if time is not None:
            yield line, time
        before = own


def _printed_rates(text: str) -> list[list[tuple[float, float]]]:
    """When a line says how much was done in a second, and the seconds for one unit of it, for each kind of rate."""
    if not any(word in text for word in _WORK_WORDS):
        return []
    series: dict[str, list[tuple[float, float]]] = {}
    for line in text[-_PACE_RANGE:].split("\n"):
        if not any(word in line for word in _WORK_WORDS) or (time := time_of(line)) is None:
            continue
        for name, rate in rates_of(line):
            if rate > 0:
                series.setdefault(name, []).append((time, 1 / rate))
    return list(series.values())


def rates_of(line: str) -> list[tuple[str, float]]:
    """How much a line says was done in a second, with the name of each rate in lower case."""
    found = _WORK_PER_S.finditer(line, 0, _LINE_RANGE)
    return [((hit["name"] or hit["unit"]).lower(), float(hit["value"] or hit["first"])) for hit in found]


def _printed_paces(text: str) -> list[float]:
    """The seconds for a step that progress bars print, in order."""
    found = (_RATE.search(line, 0, _LINE_RANGE) for line in text[-_PACE_RANGE:].split("\n") if "it" in line)
    return [
        float(rate["value"]) if rate["unit"] == "s/it" else 1 / float(rate["value"])
        for rate in found
        if rate is not None and float(rate["value"]) > 0
    ]
