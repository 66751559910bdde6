"""Features of an extracted case, by name: words of its evidence by role, catalogue entries, facts of the event.

The same in training and serving. Prefixes of names:

- `i:` a word of the initiating lines; `w:` a word of any line (of a short log every line, of a long one its evidence);
  `i:one two` and `w:one two` a pair of neighbouring words
- `s:` a catalogue entry; `sc:`, `sk:`, `sy:`, `sr:` its labels of cause, category, symptom and retry outlook
- `e:` a fact of the event; `r:` a word of the scheduler's reason or message; `d:` how a process ended
- `x:` an exception class
- `f:` a cue about who is affected and for how long
- `g:` a cue about the training stage, `g1:` the stage named last, `g2:` both. Only the symptom classifier reads these.
"""

import math
import operator
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from classifiers.contracts import JobFacts
from classifiers.extraction import benign_lines, failure_stage
from classifiers.extraction.evidence_items import EvidenceItem, ExtractedCase
from classifiers.extraction.onset import Onset
from classifiers.model import constants
from classifiers.model.line_weights import EQUAL, LineWeights
from classifiers.model.tokenizer import is_known_code, words

VERSION: Final = 6
CATALOGUE_PREFIXES: Final = ("s:", "sc:", "sk:", "sy:", "sr:")
STAGE_PREFIXES: Final = ("g:", "g1:", "g2:")
WORD_PREFIXES: Final = ("i:", "w:")
_PROCESS_GROUP_CUES: Final = frozenset({"group", "launch", "wrap", "broadcast", "collective", "command"})


def features(extracted: ExtractedCase, lines: LineWeights = EQUAL) -> dict[str, float]:
    """All features of a case by name; `lines` says how much the words of each line count."""
    out: dict[str, float] = {}
    harmless = frozenset(place for place, item in enumerate(extracted.items) if benign_lines.is_harmless_context(item))
    initiating = [item for item in extracted.items if item.role == "initiating" and not item.derived]
    initiating = initiating[: constants.INITIATING_ITEMS]
    leading = ((item.message, 1.0 if index == 0 else 0.5) for index, item in enumerate(initiating))
    _add_words(leading, "i:", constants.INITIATING_WORDS_LENGTH, out)
    weighted = _weighted_lines(extracted, harmless, any_initiating=bool(initiating))
    telling = ((line, weight * lines.weight(line)) for line, weight in weighted)
    _add_words(telling, "w:", constants.ALL_WORDS_LENGTH, out)
    for index, item in enumerate(initiating):
        if item.exception:
            out.setdefault(f"x:{item.exception}", 1.0 if index == 0 else 0.4)
    _add_entries(extracted.items, harmless, out)
    _add_job_facts(extracted.case.job, out)
    _add_process_facts(extracted, out)
    _add_cues(extracted, out)
    out["bias"] = 1.0
    return out


def is_distributed(extracted: ExtractedCase) -> bool:
    """Whether the job had more than one process, as far as event and log show."""
    job = extracted.case.job
    return len(job.nodes) > 1 or (job.gpus or 0) > 1 or extracted.case.ranks_seen > 1


def is_single_process(extracted: ExtractedCase) -> bool:
    """Whether event and log show one process, so that no symptom of distributed training applies.

    One device with words of a process group in the log is one of several processes, or the first of a group to be.
    """
    job = extracted.case.job
    one = job.gpus is not None and job.gpus <= 1 and len(job.nodes) <= 1 and extracted.case.ranks_seen <= 1
    return one and _PROCESS_GROUP_CUES.isdisjoint(extracted.cues)


def _weighted_lines(
    extracted: ExtractedCase, harmless: AbstractSet[int], *, any_initiating: bool
) -> Iterable[tuple[str, float]]:
    """Lines and the weight of their role. The lines of a short log have the same, as none of them was selected.

    Args:
        extracted: the case.
        harmless: the places of its items that are harmless lines.
        any_initiating: whether an item is a beginning.
    """
    for index, item in enumerate(extracted.items[: constants.EVIDENCE_ITEMS]):
        if (
            item.derived
            or item.explained
            or index in harmless
            or (extracted.short_log_lines and (item.from_scheduler or _is_routine(item)))
        ):
            continue  # that a job failed is no word of its log, nor are notices, nor what follows from an earlier step
        if _is_closing(item, extracted):
            if item.role != "context":
                yield item.message, constants.WORD_WEIGHT_OF_ROLE[item.role]
        elif _is_earlier(item, extracted):
            yield item.message, constants.EARLIER_LINE_WEIGHT
        elif extracted.short_log_lines or extracted.chars == 0 or (not any_initiating and item.role != "initiating"):
            yield item.message, 1.0
        elif item.role == "initiating" and index:
            yield item.message, constants.FOLLOWING_LINE_WEIGHT
        else:
            yield item.message, constants.WORD_WEIGHT_OF_ROLE[item.role]
    for line in extracted.short_log_lines[-constants.SHORT_LOG_LINES :]:
        yield line, 1.0
    for line in extracted.earlier_lines[-constants.SHORT_LOG_LINES :]:
        yield line, constants.EARLIER_LINE_WEIGHT


def _is_routine(item: EvidenceItem) -> bool:
    """Whether any run prints the line of an item, and no catalogue entry knows it."""
    is_plain = item.role == "context" and not item.hits
    return benign_lines.is_routine(item.text) if is_plain else benign_lines.is_benign(item.text)


def _is_earlier(item: EvidenceItem, extracted: ExtractedCase) -> bool:
    """Whether an item stands before the first failing line of a short log."""
    first = extracted.first_line
    return (
        bool(extracted.earlier_lines)
        and first is not None
        and item.stream == first.stream
        and item.offset < first.start_offset
    )


def _is_closing(item: EvidenceItem, extracted: ExtractedCase) -> bool:
    """Whether an item stands where a launcher or scheduler ends the job: such lines are the same whatever failed."""
    first, closing = extracted.first_line, extracted.closing_offset
    return first is not None and closing is not None and item.stream == first.stream and item.offset >= closing


def _add_words(lines: Iterable[tuple[str, float]], prefix: str, length: float, out: dict[str, float]) -> None:
    """Add the words of weighted lines as a vector of this length; a word has the greatest weight of its lines."""
    block: dict[str, float] = {}
    for line, weight in lines:
        if not block:
            block = dict.fromkeys(words(line), weight)
            continue
        for word in words(line):
            if block.get(word, 0.0) < weight:
                block[word] = weight
    if block:
        scale = length / math.sqrt(sum(map(operator.mul, block.values(), block.values())))
        out.update({prefix + word: value * scale for word, value in block.items()})


def _add_entries(items: list[EvidenceItem], harmless: AbstractSet[int], out: dict[str, float]) -> None:
    leading = True
    for place, item in enumerate(items):
        if not item.hits or item.explained or place in harmless:
            continue
        rank = 1.0 if leading else 0.6
        leading = leading and item.role != "initiating"
        for hit in item.hits:
            role = item.role if item.role == "context" else hit.role
            value = constants.ENTRY_VALUE_OF_STRENGTH[hit.strength] * constants.ENTRY_VALUE_OF_ROLE[role] * rank
            _raise_to(out, f"s:{hit.id}", value)
            for prefix, weights in (("sc:", hit.causes), ("sk:", hit.categories), ("sy:", hit.symptoms)):
                for code, weight in weights.items():
                    _raise_to(out, prefix + code, 2.0 * value * weight)
            if hit.retry is not None:
                _raise_to(out, f"sr:{hit.retry}", 2.0 * value)


def _raise_to(out: dict[str, float], name: str, value: float) -> None:
    out[name] = max(out.get(name, 0.0), value)


def _add_job_facts(job: JobFacts, out: dict[str, float]) -> None:
    out[f"e:status={job.status}"] = constants.STATUS_VALUE
    if job.exit_code is not None:
        code = job.exit_code if is_known_code(job.exit_code) else "#"
        out[f"e:exit={code}"] = constants.EXIT_VALUE
    if job.signal:
        out[f"e:signal={job.signal}"] = constants.EXIT_VALUE
    if job.scheduler:
        out[f"e:scheduler={job.scheduler.lower()[:20]}"] = constants.SCHEDULER_VALUE
    for text in (job.reason, job.message):
        for word in words((text or "")[:300])[:24]:
            out[f"r:{word}"] = constants.MESSAGE_WORD_VALUE


def _add_process_facts(extracted: ExtractedCase, out: dict[str, float]) -> None:
    if is_distributed(extracted):
        out["e:several"] = constants.PROCESS_COUNT_VALUE
    elif is_single_process(extracted):
        out["e:one"] = constants.PROCESS_COUNT_VALUE
    initiating = [item for item in extracted.items if item.role == "initiating" and not item.from_scheduler]
    if not any(item.onset < Onset.FIRST_CONSEQUENCE for item in initiating):
        out["e:no-beginning"] = constants.EXIT_VALUE
        if any(hit.role == "cascade" for item in extracted.items for hit in item.hits):
            out["e:only-cascade"] = constants.EXIT_VALUE
    if extracted.chars == 0:
        out["e:no-log"] = constants.STATUS_VALUE
    for end in extracted.process_exits[:6]:
        if end.signal:
            out[f"d:signal={end.signal}"] = constants.PROCESS_SIGNAL_VALUE
        elif end.exit_code is not None:
            code = end.exit_code if is_known_code(end.exit_code) else "#"
            out[f"d:code={code}"] = constants.PROCESS_EXIT_CODE_VALUE


def _add_cues(extracted: ExtractedCase, out: dict[str, float]) -> None:
    known = failure_stage.cues()
    for cue in extracted.cues:
        out[f"f:{cue}" if cue in known.shared else f"g:{cue}"] = constants.CUE_VALUE
    if extracted.stage:
        out[f"g1:{extracted.stage}"] = constants.STAGE_VALUE
        for cue in extracted.cues:
            if cue not in known.stages and cue not in known.shared:
                out[f"g2:{extracted.stage} {cue}"] = constants.STAGE_VALUE
