"""Turns an extracted case into named numbers: words of its evidence by role, catalogue entries, facts of the event.

The same in training and serving. A feature's name says what it is: `i:word` a word of the lines that began it,
`w:word` of any line (of a short log every line, of a long one its evidence), `w:one two` a pair, `s:id` an entry of
the catalogue, `sc:`/`sk:`/`sy:`/`sr:` what the entries together say of cause, category, symptom and retry, `e:` a fact
of the event, `x:` an exception class, `g:` a mark of the stage around the first line, `g1:` the stage named last and
`g2:` both (the symptom's head alone reads these), `f:` a mark there of who is concerned and for how long, which every
head reads.
"""

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Final

from classifiers.extraction import benign_lines, failure_stage
from classifiers.extraction.evidence_items import EvidenceItem, ExtractedCase
from classifiers.extraction.onset import Onset
from classifiers.taxonomy import Role

VERSION: Final = 5
_TOKEN: Final = re.compile(
    r"[a-z][a-z0-9+.-]{1,15}://[^\s'\"<>)\]]+"
    r"|(?:[A-Za-z]:)?[~.]{0,2}(?:[/\\][\w.@+-]+){2,}[/\\]?"
    r"|0x[0-9a-fA-F]+"
    r"|[A-Za-z_][\w]*(?:'[a-z])?"
    r"|\d+(?:\.\d+)*"
    r"|[\u4e00-\u9fff]",  # written without spaces: a sign is a word, and pairs of them are what words are elsewhere
    re.ASCII,
)
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# British and American spelling are one word: initialise, analysed, colour, cancelled.
_SPELT: Final = (
    (re.compile(r"(?<=\w{3})([iy])s(?=(?:e|ed|es|er|ers|ing|ation|ations)$)"), r"\1z"),
    (re.compile(r"(?<=\w{3})our(?=s?$)"), "or"),
    (re.compile(r"(?<=\w{3})ll(?=(?:ed|ing)$)"), "l"),
)
_HEXLIKE: Final = re.compile(r"(?=[0-9a-f]*\d)[0-9a-f]{7,}")
_TELLING: Final = frozenset(
    # exit codes, signals, errno and HTTP statuses
    str(number)
    for number in (
        1,
        2,
        6,
        7,
        8,
        9,
        11,
        12,
        13,
        15,
        28,
        30,
        104,
        110,
        111,
        113,
        122,
        126,
        127,
        129,
        134,
        135,
        137,
        139,
        143,
        255,
        400,
        401,
        403,
        404,
        408,
        409,
        429,
        500,
        502,
        503,
        504,
    )
)
_STOP: Final = frozenset(
    {
        "the", "a", "an", "of", "to", "in", "on", "at", "by", "is", "was", "be", "been",
        "are", "for", "and", "or", "with", "as", "it", "its", "this", "that", "from", "has", "have",
    }
)  # fmt: skip
_CUT: Final = 9
_MOST_CHARS: Final = 420
_MOST_TOKENS: Final = 60
_WEIGHT: Final[Mapping[Role, float]] = {"initiating": 1.0, "cascade": 0.35, "teardown": 0.25, "context": 0.4}
_STRENGTH: Final = {"decisive": 1.0, "strong": 0.8, "weak": 0.4}
_FOLLOWING: Final = 0.6
# How much the lines that began it and any lines count as a whole.
_OF_FIRST: Final = 1.5
_OF_ANY: Final = 4.0
_MOST_LINES: Final = 24
_OF_A_GROUP: Final = frozenset({"group", "launch", "wrap", "broadcast", "collective", "command"})
_MARK: Final = 1.0
_STAGE: Final = 0.8
_ROLE: Final[Mapping[Role, float]] = {"initiating": 1.0, "cascade": 0.4, "teardown": 0.25, "context": 0.25}


def _word(token: str) -> list[str]:  # noqa: PLR0911 - one return a shape of token
    """One token as words: spelt one way, cut to nine letters, joined words in parts too."""
    if "://" in token:
        return ["<url>"]
    first = token[0]
    if first.isdigit():
        if token.startswith("0x"):
            return ["<hex>"]
        return [token if token in _TELLING else "#"]
    if "/" in token or "\\" in token:
        name, dot, extension = token.rstrip("/\\").rpartition(".")
        return ["<path>", f"<.{extension.lower()}>"] if dot and name and len(extension) <= 5 else ["<path>"]  # noqa: PLR2004
    low = token.lower()
    if low in _STOP:
        return []
    if _HEXLIKE.fullmatch(low):
        return ["<hex>"]
    if "_" in token or (low != token and token[1:].lower() != token[1:] and not token.isupper()):
        parts = [_spelt(part.lower())[:_CUT] for part in _PART.findall(token)]
        if len(parts) > 1:
            return [low[:40], *(part for part in parts if part not in _STOP and not part.isdigit())]
    return [_spelt(low)[:_CUT]]


def _spelt(word: str) -> str:
    """The word in American spelling, by its ending."""
    for pattern, ending in _SPELT:
        word = pattern.sub(ending, word)
    return word


_word_cached = lru_cache(maxsize=65_536)(_word)


@lru_cache(maxsize=16_384)
def words(line: str) -> tuple[str, ...]:
    """The words of a line in order and then the pairs of neighbours, each once."""
    flat: list[str] = []
    for token in _TOKEN.findall(line[:_MOST_CHARS])[:_MOST_TOKENS]:
        flat += _word_cached(token)
    pairs = [f"{one} {other}" for one, other in pairwise(flat) if one != "#" or other != "#"]
    return tuple(dict.fromkeys([*flat, *pairs]))


def _lines(extracted: ExtractedCase, *, lone: bool) -> Iterable[tuple[str, float]]:
    """The lines whose words count, with weights: of a short log all alike, for none of it was chosen to be shown."""
    for place, item in enumerate(extracted.items[:16]):
        if extracted.short_log_lines and (item.from_scheduler or benign_lines.is_benign(item.text)):
            continue  # a short log speaks for itself: that a job failed is no word of it, nor are notices
        if extracted.short_log_lines or extracted.chars == 0 or (lone and item.role != "initiating"):
            yield item.message, 1.0
        else:
            yield item.message, _FOLLOWING if item.role == "initiating" and place else _WEIGHT[item.role]
    for line in extracted.short_log_lines[-_MOST_LINES:]:
        yield line, 1.0


def _text_block(items: Iterable[tuple[str, float]], prefix: str, length: float, out: dict[str, float]) -> None:
    """Adds the words of lines, each with the weight of the weightiest line it is in, as a vector of this length."""
    block: dict[str, float] = {}
    for line, weight in items:
        if not block:
            block = dict.fromkeys(words(line), weight)
            continue
        for word in words(line):
            if block.get(word, 0.0) < weight:
                block[word] = weight
    if block:
        scale = length / math.sqrt(sum(value * value for value in block.values()))
        out.update({prefix + word: value * scale for word, value in block.items()})


def _add_signatures(items: list[EvidenceItem], out: dict[str, float]) -> None:
    place = 0
    for item in items:
        if not item.hits:
            continue
        rank = 1.0 if place == 0 else 0.6
        place += item.role == "initiating"
        for hit in item.hits:
            value = _STRENGTH[hit.strength] * _ROLE[hit.role if item.role != "context" else "context"] * rank
            name = f"s:{hit.id}"
            out[name] = max(out.get(name, 0.0), value)
            for prefix, weights in (("sc:", hit.causes), ("sk:", hit.categories), ("sy:", hit.symptoms)):
                for code, weight in weights.items():
                    name = prefix + code
                    out[name] = max(out.get(name, 0.0), 2.0 * value * weight)
            if hit.retry is not None:
                name = f"sr:{hit.retry}"
                out[name] = max(out.get(name, 0.0), 2.0 * value)


def _add_facts(extracted: ExtractedCase, out: dict[str, float]) -> None:  # noqa: C901, PLR0912 - one branch a fact
    case = extracted.case
    job = case.job
    out[f"e:status={job.status}"] = 1.0
    if job.exit_code is not None:
        out[f"e:exit={job.exit_code}" if str(job.exit_code) in _TELLING else "e:exit=#"] = 0.7
    if job.signal:
        out[f"e:signal={job.signal}"] = 0.7
    if job.scheduler:
        out[f"e:scheduler={job.scheduler.lower()[:20]}"] = 0.4
    for text in (job.reason, job.message):
        if text:
            for word in words(text[:300])[:24]:
                out[f"r:{word}"] = 0.6
    if is_distributed(extracted):
        out["e:several"] = 0.5
    elif is_single(extracted):
        out["e:one"] = 0.5
    beginning = [item for item in extracted.items if item.role == "initiating" and not item.from_scheduler]
    if not any(item.onset < Onset.FIRST_CONSEQUENCE for item in beginning):
        out["e:no-beginning"] = 0.7
        if any(hit.role == "cascade" for item in extracted.items for hit in item.hits):
            out["e:only-cascade"] = 0.7
    if extracted.chars == 0:
        out["e:no-log"] = 1.0
    for death in extracted.process_exits[:6]:
        if death.signal:
            out[f"d:signal={death.signal}"] = 0.4
        elif death.exit_code is not None:
            out[f"d:code={death.exit_code}" if str(death.exit_code) in _TELLING else "d:code=#"] = 0.3


def is_distributed(extracted: ExtractedCase) -> bool:
    """Whether the job had more than one process, as far as event and log show."""
    job = extracted.case.job
    return len(job.nodes) > 1 or (job.gpus or 0) > 1 or extracted.case.ranks_seen > 1


def is_single(extracted: ExtractedCase) -> bool:
    """Whether event and log say that the job had one process: then it has no symptom of distributed training.

    One device with words of a process group in the log is one of several processes, or the first of a group to be.
    """
    job = extracted.case.job
    one = job.gpus is not None and job.gpus <= 1 and len(job.nodes) <= 1 and extracted.case.ranks_seen <= 1
    return one and _OF_A_GROUP.isdisjoint(extracted.cues)


def features(extracted: ExtractedCase) -> dict[str, float]:
    """All features of a case by name."""
    out: dict[str, float] = {}
    items = extracted.items
    beginning = [item for item in items if item.role == "initiating"]
    first = ((item.message, 1.0 if place == 0 else 0.5) for place, item in enumerate(beginning[:4]))
    _text_block(first, "i:", _OF_FIRST, out)
    _text_block(_lines(extracted, lone=not beginning), "w:", _OF_ANY, out)
    for place, item in enumerate(beginning[:4]):
        if item.exception:
            out.setdefault(f"x:{item.exception}", 1.0 if place == 0 else 0.4)
    _add_signatures(items, out)
    _add_facts(extracted, out)
    known = failure_stage.cues()
    for mark in extracted.cues:
        out[f"f:{mark}" if mark in known.shared else f"g:{mark}"] = _MARK
    if extracted.stage:
        out[f"g1:{extracted.stage}"] = _STAGE
        for mark in extracted.cues:
            if mark not in known.stages and mark not in known.shared:
                out[f"g2:{extracted.stage} {mark}"] = _STAGE
    out["bias"] = 1.0
    return out
