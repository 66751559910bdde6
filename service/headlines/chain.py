"""The chain of a failure in sentences: what began, what followed where, how the job ended, what was set aside."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from classifiers.contracts import ChainKind
from service.contracts.verdict import ChainPart
from service.formatting import duration, whole_words
from service.headlines.headline import OwnTitles, catalogue_title, headline

_QUOTED: Final = 120  # characters of a line
_AT_ONCE_S: Final = 1.0  # a shorter time is not distinguished from zero


@dataclass(frozen=True, slots=True)
class ChainSentence:
    """One step in words, and its line of the log; `line` is empty where the words hold it already."""

    kind: ChainKind
    text: str
    line: str = ""


def chain_sentences(chain: Sequence[ChainPart], own: OwnTitles | None = None) -> list[ChainSentence]:
    """The steps in words; empty where nothing is known but how the job ended. `own` as for `headline`."""
    if all(step.kind == "end" for step in chain):
        return []
    return [_sentence(step, own) for step in chain]


def sentences_beyond_ends(chain: Sequence[ChainPart], own: OwnTitles | None = None) -> list[ChainSentence]:
    """The steps in words, where there is more to tell than a beginning and an end. `own` as for `headline`."""
    kinds = {step.kind for step in chain}
    return chain_sentences(chain, own) if kinds - {"beginning", "end"} else []


def _sentence(step: ChainPart, own: OwnTitles | None) -> ChainSentence:
    if step.kind == "beginning":
        where = ", ".join(part for part in (_rank(step.rank), step.node or "") if part)
        beginning = headline(step.text, own=own) or step.text
        return ChainSentence(step.kind, f"{beginning} ({where})" if where and where not in beginning else beginning)
    if step.kind == "end":
        return ChainSentence(step.kind, f"The job ended: {step.text}")
    if step.kind == "set_aside":
        many = f"{step.lines} such lines" if step.lines > 1 else ""
        line = _with(catalogue_title(step.title or ""), [step.node or "", many])
        return ChainSentence(step.kind, f"Explains nothing here: {line}", _line(step))
    ranks = f"{step.ranks} other ranks" if step.ranks > 1 else _rank(step.rank)
    later = f"{duration(step.after_s)} later" if step.after_s is not None and step.after_s >= _AT_ONCE_S else ""
    if step.title is None:
        text = step.text.replace("lines", "line") if step.lines == 1 else step.text
        return ChainSentence(step.kind, _with(f"{step.lines} {text}", [ranks if step.ranks else ""]))
    return ChainSentence(step.kind, _with(catalogue_title(step.title), [ranks, later]), _line(step))


def _rank(rank: int | None) -> str:
    return "" if rank is None else f"rank {rank}"


def _with(text: str, parts: Sequence[str]) -> str:
    named = ", ".join(part for part in parts if part)
    return f"{text} ({named})" if named else text


def _line(step: ChainPart) -> str:
    return whole_words(" ".join(step.text.split()), _QUOTED)
