"""Reads the project's documents: code spans, code blocks, headings, links and tables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)


def documents() -> list[Path]:
    """Every document that people read, relative to the root."""
    named = [
        ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "deploy/RUNBOOK.md")
    ]
    found = [*named, *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("README.md")]
    found = [path for path in found if "node_modules" not in path.parts]
    return sorted({path.relative_to(ROOT) for path in found})


@dataclass(frozen=True, slots=True)
class Section:
    """The text below one heading, without the headings below it."""

    title: str
    text: str

    @property
    def rows(self) -> list[list[str]]:
        """The rows of its tables as cells, header and separator rows left out."""
        lines = self.text.splitlines()
        rows = [at for at, line in enumerate(lines) if line.startswith("|")]
        separators = {at for at in rows if set(lines[at]) <= set("|-: ")}
        return [
            [cell.strip() for cell in lines[at].strip().strip("|").split("|")]
            for at in rows
            if at not in separators and at + 1 not in separators
        ]


@cache
def text_of(document: Path) -> str:
    """The text of a document."""
    return (ROOT / document).read_text(encoding="utf-8")


def prose(document: Path) -> str:
    """The text without code blocks."""
    return FENCE.sub("", text_of(document))


def spans(document: Path) -> list[str]:
    """The code spans outside code blocks."""
    return SPAN.findall(prose(document))


def code(document: Path) -> list[str]:
    """The code spans, and the lines of the code blocks with their continuation lines joined."""
    lines = []
    for block in FENCE.findall(text_of(document)):
        body = block.split("\n", 1)[1].removesuffix("```")
        lines += re.sub(r"(\\|\|)\n\s*", r"\1 ", body).splitlines()
    return [*spans(document), *lines]


def sections(document: Path) -> Iterator[Section]:
    """The sections in order."""
    text = prose(document)
    heads = list(HEADING.finditer(text))
    for at, head in enumerate(heads):
        end = heads[at + 1].start() if at + 1 < len(heads) else len(text)
        yield Section(head.group(2), text[head.end() : end])


def anchors(document: Path) -> set[str]:
    """The anchors of the headings, as forges make them."""
    return {
        re.sub(r"[^\w\- ]", "", head.group(2).lower()).replace(" ", "-") for head in HEADING.finditer(prose(document))
    }


def commands(document: Path, program: str) -> list[list[str]]:
    """The command lines that start with a program, as words; text in quotes is one word."""
    found = []
    for line in code(document):
        for part in re.split(r"\s+(?:&&|\||;)(?:\s+|$)|\s+#\s", line):
            words = re.findall(r"'[^']*'|\"[^\"]*\"|\S+", part.removeprefix("$ "))
            while words and (re.fullmatch(r"[A-Z_]+=.*", words[0]) or words[0] == "export"):
                words = words[1:]
            if words and words[0].rsplit("/", 1)[-1] == program:
                found.append(words[1:])
    return found
