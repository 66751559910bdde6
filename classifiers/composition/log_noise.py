"""Disturbs the text of a log as logs are disturbed anyway: banners, progress, survived warnings, colours, time stamps.

Lines are added only before the first line that could belong to the failure, so that no added line says that the job
went on after it. Reactions of other ranks are added at the end.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from classifiers.composition.synthetic_values import SyntheticValues
from classifiers.data import noise_data
from classifiers.data.noise_data import LineRole, Use

# Judgement, without counts of logs: shares of logs with a banner, colours, time stamps, about one progress bar; of
# survived warnings that are repeated; of the lines of a coloured log that have a colour. Each form is frequent enough to
# be measured, and many logs are without it.
_SHARE_BANNER: Final = 0.5
_SHARE_COLOUR: Final = 0.25
_SHARE_STAMP: Final = 0.25
_SHARE_BAR: Final = 0.3
_SHARE_REPEATED: Final = 0.15
_COLOURED_LINES: Final = 0.15
# From such a line on a log may be about the failure. Searched in lower case: that takes a tenth of the time of a search
# that ignores case, as the engine then knows with which letters a match may begin.
_TROUBLE: Final = re.compile(
    r"error|exception|traceback|fatal|fail|abort|kill|signal|terminat|cancel|timed? ?out|denied|refused|reset by peer|"
    r"segmentation|core dumped|panic|no such|not found|cannot|can't|could not|unable|invalid|missing|out of memory|"
    r"corrupt|unexpected|assert|exit(?:ed|ing)?\b|usage:|mismatch|xid|ecc|nan\b|lost|unhealthy|closed|stuck|hang"
)
# What launchers put in front of each line of a process.
_TAG: Final = re.compile(
    r"\[\d+(?:,\d+)?\]<std\w+>:? ?|\[default\d+\]:|\[rank\d+\]: ?|\[prterun-[^\]]+\]<std\w+>: | *\d+: |\[pod/[^\]]+\] |"
    r"\(\w+ pid=\d+(?:, ip=[\d.]+)?\) |[\w.-]+ +\| |[a-z][\w.-]*\d[\w.-]*: "
)
# Part of a block that one write call prints; nothing is put in front of it.
_CONTINUED: Final = re.compile(r"\s|[\])}|+]|\^|During handling|The above exception")


@dataclass(frozen=True, slots=True)
class Setting:
    """How one log is disturbed.

    Attributes:
        use: which half of the lines.
        blocks: how many blocks of lines are added at most.
        framework: the job's framework, None if unknown.
        at: when the log begins.
        seconds: how long it was written.
        values: values for the templates, such as the node.
        cascades: whether reactions of another rank (value `peer`) are added at the end.
    """

    use: Use
    blocks: int
    framework: str | None
    at: datetime
    seconds: float
    values: dict[str, str]
    cascades: bool = False


def disturb(text: str, setting: Setting, rng: random.Random) -> str:
    """Return the text with neutral lines and the marks of terminals and log collectors.

    A text without any line stays empty: a stream that printed nothing is a fact.
    """
    if not text.strip():
        return text
    synthetic = SyntheticValues(rng)
    synthetic.now, synthetic.known = setting.at, dict(setting.values)
    closing = "\n" if text.endswith("\n") else ""
    lines = text.removesuffix("\n").split("\n")
    lines = _insert(lines, setting, synthetic)
    if setting.cascades:
        lines += _block("cascade", setting, synthetic)
    lines = _marks(lines, setting, synthetic)
    return "\n".join(lines) + closing


def neutral_end(lines: Sequence[str]) -> int:
    """Return how many lines at the start are surely not about the failure."""
    return next((number for number, line in enumerate(lines) if _TROUBLE.search(line.lower())), len(lines))


def _insert(lines: list[str], setting: Setting, synthetic: SyntheticValues) -> list[str]:
    rng = synthetic.rng
    last = neutral_end(lines)
    places = [number for number in range(last + 1) if number in {0, len(lines)} or _is_between(lines, number)]
    if last == len(lines):
        places = [number for number in places if number < len(lines)]  # the last line may be how the failure shows
    added: dict[int, list[str]] = {}
    step, total = rng.randint(10, 9_000), rng.randint(10_000, 90_000)
    for place in sorted(rng.choices(places or [0], k=rng.randint(0, setting.blocks))):
        role: LineRole = rng.choice(["progress", "progress", "survived"])
        tag = _tag(lines[place] if place < len(lines) else "")
        block = [tag + line for line in _block(role, setting, synthetic)]
        if role == "survived" and rng.random() < _SHARE_REPEATED:
            block *= rng.randint(2, 12)
        step += rng.randint(1, 50)
        added.setdefault(place, []).extend(_numbers(line, step, total, rng) for line in block)
        if rng.random() < _SHARE_BAR / max(1, setting.blocks):
            added[place].append(_bar(setting.use, step, total, rng))
    if rng.random() < _SHARE_BANNER:
        added[0] = _block("banner", setting, synthetic) + added.get(0, [])
    return [line for number in range(len(lines) + 1) for line in [*added.get(number, ()), *lines[number : number + 1]]]


def _tag(line: str) -> str:
    found = _TAG.match(line)
    return found[0] if found else ""


def _is_between(lines: Sequence[str], number: int) -> bool:
    """Whether something can stand before a line: it and the line before it are not parts of one block."""
    return not _is_continued(lines[number]) and not _is_continued(lines[number - 1])


def _is_continued(line: str) -> bool:
    return _CONTINUED.match(line.removeprefix(_tag(line))) is not None


def _block(role: LineRole, setting: Setting, synthetic: SyntheticValues) -> list[str]:
    fitting = [
        group
        for group in noise_data.log_lines().groups
        if group.role == role
        and group.use == setting.use
        and ("any" in group.frameworks or setting.framework in group.frameworks)
    ]
    if not fitting:
        return []
    return synthetic.fill(synthetic.rng.choice(synthetic.rng.choice(fitting).texts)).split("\n")


def _numbers(line: str, step: int, total: int, rng: random.Random) -> str:
    values = {
        "%step": str(step),
        "%total": str(total),
        "%loss": f"{rng.uniform(0.4, 7.0):.4f}",
        "%pct": f"{min(99, 100 * step // total)}",
        "%rate": f"{rng.uniform(0.3, 40):.2f}",
    }
    for name, value in values.items():
        line = line.replace(name, value)
    return line


def _bar(use: Use, step: int, total: int, rng: random.Random) -> str:
    template = rng.choice([text for text, own in noise_data.log_lines().bars if own == use])
    return "".join(_numbers(template, min(total, step + number), total, rng) for number in range(rng.randint(2, 12)))


def _marks(lines: list[str], setting: Setting, synthetic: SyntheticValues) -> list[str]:
    rng = synthetic.rng
    if rng.random() < _SHARE_COLOUR:
        colour = rng.choice([text for text, use in noise_data.log_lines().colours if use == setting.use])
        lines = [
            colour.replace("{line}", line) if line.strip() and rng.random() < _COLOURED_LINES else line
            for line in lines
        ]
    if rng.random() < _SHARE_STAMP:
        form, template, _ = rng.choice([stamp for stamp in noise_data.log_lines().stamps if stamp[-1] == setting.use])
        last = neutral_end(lines)  # what the job dies of is printed at its end
        pauses = [rng.choice([0, 0, 1, 3, 40, 900]) if number <= last else 0 for number in range(len(lines))]
        if not any(pauses):
            pauses[0] = 1
        step, at, stamped = setting.seconds / max(1, sum(pauses)), setting.at, []
        for line, pause in zip(lines, pauses, strict=True):
            at += timedelta(seconds=pause * step)
            shown = f"{at:{form}}".replace(f"{at.microsecond:06d}", f"{at.microsecond // 1000:03d}")
            stamped.append(template.replace("{at}", shown).replace("{line}", line))
        lines = stamped
    return lines
