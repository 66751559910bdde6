"""Prints an explanation as text for a terminal: wrapped to its width, with colours only where they are wanted."""

import os
import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Final, Literal

from classifiers.suspected_place import suspected_place
from service.contracts.event import Status
from service.contracts.verdict import VerdictBody
from service.explain.explanation import NODE_EVENT, Explanation, ShownLine
from service.explain.job_facts import JobEnd
from service.formatting import escape_invisible
from service.headlines.chain import chain_sentences
from service.web.pages import display_names

ColorChoice = Literal["auto", "always", "never"]

_WIDTH: Final = 100  # columns where the output is no terminal
_NARROWEST: Final = 40
_WIDEST: Final = 160
_LABEL: Final = 12  # columns of the labels at the left
_ROLE: Final = 2 + len("initiating") + 2  # columns before the place of a line
_SHORT_COLUMN: Final = 4  # columns below places that are too long to stand beside a line
_LEAST_TEXT: Final = 20  # columns of the text of a line
_OF_NO_PROCESS: Final = frozenset({"nvidia_smi", "dmesg", "sacct"})
_OWN_RANK: Final = re.compile(r"\[rank ?\d{1,6}\]")
_LINES_OF_TEXT: Final = 4  # rows of one log line
_MITIGATIONS: Final = 3
_LEAST_SHARE: Final = 0.05  # of a mitigation that is printed (judgement)
_LEAST_CONFIDENCE: Final = 0.8

_NO_FAILURE: Final = "If the job failed, add the log of its standard error, of its other ranks or of its launcher"
_SAY_HOW: Final = ", or say how it ended (--status, --exit-code)"
# The line that mitigations name is printed already.
_LOOK_FIRST: Final = " Look first at: "
_QUOTED_LINE: Final = re.compile(r"^Look first at: .+(?=\. Change the code )", re.DOTALL)
_BOLD: Final = "1"
_DIM: Final = "2"
_RED: Final = "31"
_GREEN: Final = "32"
_YELLOW: Final = "33"
_CYAN: Final = "36"
_ROLE_COLOR: Final = {"initiating": _RED, "cascade": _YELLOW, "teardown": _DIM, "context": _DIM}
_DECISION_COLOR: Final = {"stop": _RED, "resubmit_now": _GREEN, "resubmit_after": _GREEN}


@dataclass(frozen=True, slots=True)
class Style:
    """Width in columns, and whether to use colours."""

    width: int = _WIDTH
    colors: bool = False

    def paint(self, text: str, *codes: str) -> str:
        """Return the text in colours."""
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if self.colors and text else text


def style_of(out: IO[str], choice: ColorChoice) -> Style:
    """Return the style for an output.

    Colours are used on a terminal unless NO_COLOR is set (no-color.org) or the terminal is `dumb`; the width is the
    terminal's, or that of COLUMNS.
    """
    is_terminal = out.isatty()
    wanted = choice == "always" or (
        choice == "auto" and is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )
    width = shutil.get_terminal_size((_WIDTH, 24)).columns if is_terminal or os.environ.get("COLUMNS") else _WIDTH
    return Style(max(_NARROWEST, min(_WIDEST, width)), wanted)


def text_of(explanation: Explanation, style: Style) -> str:
    """Return the explanation as text."""
    return "\n".join(_Printer(explanation, style).rows()) + "\n"


class _Printer:
    def __init__(self, explanation: Explanation, style: Style) -> None:
        self._explanation = explanation
        self._body: VerdictBody = explanation.body
        self._style = style

    def rows(self) -> Iterator[str]:
        yield from self._headline()
        yield ""
        yield from self._lines()
        yield from self._origin()
        yield from self._chain()
        yield from self._advice()
        yield from self._basis()

    def _headline(self) -> Iterator[str]:
        body, style = self._body, self._style
        name = f"{display_names.word('side', body.side).capitalize()} side: {display_names.title(body.cause)}"
        code = f"({body.cause})"
        if not self._explanation.shows_failure:
            yield style.paint("Not sure: these logs show no failure.", _BOLD, _YELLOW)
            return
        guess = f"{name[0].lower()}{name[1:]}"
        words = f"Not sure. The best guess is the {guess} {code}" if body.abstained else f"{name} {code}"
        if len(words) > style.width:
            yield from (style.paint(row, _BOLD) for row in self._wrapped(words))
        elif body.abstained:
            doubt = style.paint("Not sure.", _BOLD, _YELLOW)
            yield f"{doubt} The best guess is the {style.paint(guess, _BOLD)} {code}"
        else:
            yield style.paint(name, _BOLD) + f" {code}"
        sure = f"{_percent(body.confidence)} sure of the side"
        if not body.abstained:
            sure += f" ({display_names.confidence(body.confidence, abstained=False)})"
        yield from self._wrapped(f"{self._summary()} {sure[0].upper()}{sure[1:]}.")
        others = [code for code in body.cause_top if code != body.cause]
        if others and (body.abstained or body.confidence < _LEAST_CONFIDENCE):
            named = ", ".join(f"{display_names.title(code)} ({code})" for code in others)
            yield from self._wrapped(f"Also possible: {named}.")

    def _summary(self) -> str:
        """The sentences on the cause; the first line is shown below, so it is left out here."""
        first = next((line.text for line in self._body.evidence if line.role == "initiating"), None)
        text = self._body.explanation
        if first is not None:
            head, found, _ = text.rpartition(f": {first[:40]}")
            text = head[: head.rfind(". ") + 1] or text if found else text
        return text if self._has_ranks() else text.replace(" (rank 0)", "").replace("(rank 0, ", "(")

    def _has_ranks(self) -> bool:
        """Whether there are several ranks; of a single process, rank 0 says nothing new."""
        suspect = self._body.suspect
        return self._has_several() or (suspect is not None and bool(suspect.rank))

    def _has_several(self) -> bool:
        """Whether several files are of processes of the job, and not of a node or a scheduler."""
        return sum(one.log.kind not in _OF_NO_PROCESS for one in self._explanation.sources) > 1

    def _lines(self) -> Iterator[str]:
        lines = self._explanation.lines
        if not lines or not self._explanation.shows_failure:
            return
        yield self._style.paint("Lines that matter", _BOLD)
        places = [_place(line) for line in lines]
        most = min(self._style.width // 3, self._style.width - _ROLE - 2 - _LEAST_TEXT)
        fitting = [len(place) for place in places if len(place) <= most]
        column = max(fitting, default=_SHORT_COLUMN)
        raised: set[tuple[str, str | None]] = set()  # an error of several lines was raised once
        for line, place in zip(lines, places, strict=True):
            yield from self._line(line, place, column, is_raised_before=(line.source, line.raised_at) in raised)
            raised.add((line.source, line.raised_at))
        yield ""

    def _line(self, line: ShownLine, place: str, column: int, *, is_raised_before: bool) -> Iterator[str]:
        style = self._style
        role = display_names.word("role", line.role, "says")
        indent = _ROLE + column + 2
        text = _visible(line.text)
        rank = f"[rank {line.rank}] " if line.rank is not None and self._has_several() else ""
        if rank and _OWN_RANK.match(text) is not None:
            rank = ""  # the line begins with its rank itself
        room = max(_LEAST_TEXT, style.width - indent)
        rows = textwrap.wrap(
            f"{rank}{text}", room, max_lines=_LINES_OF_TEXT, placeholder=" …", break_on_hyphens=False
        ) or [""]
        head = f"  {style.paint(f'{role:10}', _ROLE_COLOR[line.role])}  "
        if len(place) > column:
            yield head + style.paint(place, _CYAN)
            head = " " * (indent - column - 2)
            place = ""
        yield head + style.paint(f"{place:{column}}", _CYAN) + "  " + rows[0]
        yield from (" " * indent + row for row in rows[1:])
        if line.raised_at is not None and not is_raised_before:
            where = textwrap.wrap(f"at {_visible(line.raised_at)}", room, break_on_hyphens=False)
            yield from (" " * indent + style.paint(row, _DIM) for row in where)

    def _origin(self) -> Iterator[str]:
        body = self._body
        named = None if body.suspect is None else body.suspect.to_suspect()
        suspect = suspected_place(named, body.side, abstained=body.abstained)
        parts = [f"rank {suspect.rank}"] if suspect.rank is not None and self._has_ranks() else []
        parts += [f"GPU {suspect.gpu}"] if suspect.gpu is not None else []
        parts += [f"node {suspect.node}"] if suspect.node is not None else []
        if parts:
            yield from self._labelled("Began at", _visible(", ".join(parts)))

    def _chain(self) -> Iterator[str]:
        """What followed on other ranks or later, and which node events explain nothing."""
        for kind, label in (("consequence", "Then"), ("set_aside", "Set aside")):
            steps = [
                one
                for one in self._body.chain
                if one.kind == kind and (one.ranks > 1 or one.after_s or one.kind == "set_aside")
            ]
            for number, sentence in enumerate(chain_sentences(steps)):
                line = f": {sentence.line}" if kind == "set_aside" else ""
                yield from self._labelled("" if number else label, f"{sentence.text}{line}")

    def _advice(self) -> Iterator[str]:
        if not self._explanation.shows_failure:
            say_how = "" if "exit_code" in self._explanation.given else _SAY_HOW
            yield from self._labelled("What to do", f"{_NO_FAILURE}{say_how}.")
            return
        body = self._body
        prefix = f"{body.rule}: "
        reason = next((one.removeprefix(prefix) for one in body.reasons if one.startswith(prefix)), "")
        decision = display_names.decision(
            body.decision, status=self._explanation.end.status.value, held_by=body.held_by
        )
        yield from self._labelled("Resubmit", f"{decision}. {reason}", _DECISION_COLOR.get(body.decision, _YELLOW))
        shown = [one for one in body.mitigations if one.score >= _LEAST_SHARE][:_MITIGATIONS]
        own = self._explanation.own_entries
        texts = [f"{one.signature.title.rstrip('.')}. {one.action} ({one.signature.id})" for one in own]
        has_beginning = any(line.role == "initiating" for line in self._explanation.lines)
        for one in shown:
            text = _QUOTED_LINE.sub("Look first at the initiating line", one.text) if has_beginning else one.text
            texts.append(text.partition(_LOOK_FIRST)[0])
        for number, text in enumerate(texts):
            yield from self._labelled("" if number else "What to do", f"{number + 1}. {text}")

    def _basis(self) -> Iterator[str]:
        explanation = self._explanation
        yield from self._labelled("Job end", self._end())
        size = sum(one.log.size for one in explanation.sources)
        count = len(explanation.sources)
        yield from self._labelled("Read", f"{count} {'log' if count == 1 else 'logs'}, {_bytes(size)}")
        notes = [f"{one.log.name}: {one.log.note}" for one in explanation.sources if one.log.note]
        for note in [*notes[:3], *([f"and {len(notes) - 3} more"] if len(notes) > 3 else []), *explanation.skipped]:  # noqa: PLR2004
            yield from self._labelled("", _visible(note))
        set_aside = sum(
            line.note is not None and line.stream not in {"node", "scheduler"} for line in self._body.evidence
        )
        if set_aside:
            shown = "1 line" if set_aside == 1 else f"{set_aside} lines"
            yield from self._labelled("Not new", f"{shown} that the good run printed too, set aside")
        yield from (row for one in self._missing()[:3] for row in self._labelled("Missing", _visible(one)))

    def _end(self) -> str:
        """How the job ended; what the person did not give has a note that says from where it is known."""
        end, given = self._explanation.end, self._explanation.given
        status, code = end.status.value.replace("_", " "), f"exit code {end.exit_code}"
        codes = [code] if end.exit_code is not None else []
        codes += [f"signal {end.signal}"] if end.signal is not None else []
        if "exit_code" in given:
            is_assumed = end.status is Status.FAILED
            note = "" if "status" in given else " (assumed)" if is_assumed else " (from the log)"
            return f"{status}{note}, {code}"
        if "status" in given:
            return f"{status}, {', '.join(codes)} (from the log)" if codes else status
        note = " (assumed)" if end == JobEnd(scheduler=end.scheduler) else " (from the log)"
        return ", ".join([status, *codes]) + note

    def _missing(self) -> Sequence[str]:
        return [one for one in self._body.missing if "did not answer" in one]

    def _wrapped(self, text: str) -> list[str]:
        return textwrap.wrap(_visible(text), self._style.width, break_on_hyphens=False)

    def _labelled(self, label: str, text: str, color: str = "") -> Iterator[str]:
        rows = textwrap.wrap(_visible(text), self._style.width - _LABEL, break_on_hyphens=False) or [""]
        head = self._style.paint(f"{label:{_LABEL}}", _BOLD)
        first, _, rest = rows[0].partition(". ")
        if color and rest:
            rows[0] = f"{self._style.paint(first + '.', color)} {rest}"
        yield f"{head}{rows[0]}"
        yield from (" " * _LABEL + row for row in rows[1:])


def _percent(share: float) -> str:
    """Return a probability in percent; never 100 %, because no verdict is certain."""
    return f"{min(99, round(100 * share))} %"


def _place(line: ShownLine) -> str:
    if line.source == NODE_EVENT and line.node:
        return _visible(f"{NODE_EVENT} of {line.node}")
    return _visible(line.source if line.line is None else f"{line.source}:{line.line}")


def _visible(text: str) -> str:
    """Return the text with control characters made visible, on one line."""
    return str(escape_invisible(text.replace("\n", " ").replace("\t", " ")))


def _bytes(count: int) -> str:
    """Return a number of bytes for people."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:  # noqa: PLR2004 - of each unit
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
