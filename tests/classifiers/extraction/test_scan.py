from collections.abc import Callable, Iterable, Sequence

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from classifiers import signatures
from classifiers.extraction import scan
from classifiers.extraction.scan import Scanner, tidy
from classifiers.signatures import Signature
from tests.classifiers.packaged_catalogue import SCANNER


def test_lines_with_a_hit_are_found_with_their_numbers() -> None:
    text = "step 1 loss 2\nRuntimeError: CUDA out of memory. Tried to allocate 2 GiB\nstep 2 loss 1\nKeyError: 'x'\n"
    found = SCANNER.scan(text)
    assert [one.line_number for one in found] == [2, 4]
    assert all(text[one.offset :].startswith(one.text) for one in found)
    assert any("oom" in hit.id for hit in found[0].hits)


def test_short_words_do_not_count_inside_others() -> None:
    assert SCANNER.scan("nanometres of a bloom") == []


def test_a_progress_bar_does_not_hide_the_line_after_it() -> None:
    [found] = SCANNER.scan("10%|#    | 1/10\r20%|##   | 2/10\rKeyError: 'x'\r\n")
    assert found.text == "KeyError: 'x'"
    assert found.line_number == 1


def test_line_numbers_are_right_across_pieces_and_of_many_hits_both_ends_are_kept() -> None:
    text = "".join(f"step {number} loss 1.0000000000000000\n" for number in range(60_000)) + "KeyError: 'x'\n"
    assert [one.line_number for one in SCANNER.scan(text)] == [60_001]
    many = SCANNER.scan("".join(f"error {number}\n" for number in range(5_000)))
    assert len(many) == 1_200
    assert (many[0].text, many[-1].text) == ("error 0", "error 4999")


@given(st.text())
def test_any_text_can_be_scanned(text: str) -> None:
    for found in SCANNER.scan(text):
        assert text[found.offset :].startswith(found.text)


def test_displayed_lines_are_tidy_and_short() -> None:
    assert tidy("  a\t\tb   c ") == "a b c"
    assert len(tidy("x" * 5_000)) == 1_000


def test_landmarks_are_noted_and_are_no_hits() -> None:
    seen: set[str] = set()
    assert SCANNER.scan("step 1\né CKPT written by job-master-0\nstep 2\n", seen) == []
    assert seen == {"ckpt", "-master-0"}


def test_positions_are_right_after_letters_of_other_alphabets() -> None:
    [found] = SCANNER.scan("шаг 1 — 進捗 İ\nKeyError: 'ключ'\n")
    assert (found.text, found.line_number) == ("KeyError: 'ключ'", 2)


def test_general_wordings_of_node_events_are_not_tried_on_logs() -> None:
    text = "health agent: GPU 3 vanished from the list\n"
    assert SCANNER.scan(text) == []
    [found] = SCANNER.scan(text, of_events=True)
    assert "events.gpu-failed" in [hit.id for hit in found.hits]


@pytest.mark.slow
def test_entries_that_share_a_literal_match_as_each_does_alone() -> None:
    entries = signatures.packaged().entries
    lines = sorted({line for one in entries for line in (*one.examples, *one.near_misses) if line.isprintable()})
    text = "\n".join(lines)
    parts = [SCANNER.scan(line, of_events=True) for line in lines]
    found = {(line, hit.id) for line, part in zip(lines, parts, strict=True) for one in part for hit in one.hits}
    low = text.lower().split("\n")
    by_start: dict[str, list[tuple[str, Signature]]] = {}  # trying all literals on all lines takes seconds
    for one in entries:
        for literal in one.literals:
            assert len(literal) >= 2
            by_start.setdefault(literal[:2], []).append((literal, one))
    alone = {
        (line, one.id)
        for line, lowered in zip(lines, low, strict=True)
        for at in range(len(lowered))
        for literal, one in by_start.get(lowered[at : at + 2], ())
        if lowered.startswith(literal, at) and one.matches(line)
    }
    assert found == alone


def test_entries_that_several_words_share_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[tuple[str, ...]] = []

    def counted(patterns: Iterable[str]) -> Callable[[bytes], Sequence[int] | None]:
        compiled.append(tuple(patterns))
        return signatures.compile_set(compiled[-1])

    monkeypatch.setattr(scan, "compile_set", counted)
    scanner = Scanner(signatures.packaged())
    for line in ("the minion is late", "nomad is late", "hypervisor is late"):  # three words of one entry
        scanner.scan(line, of_events=True)
    assert len(compiled) == 1


def test_entries_that_are_together_too_large_for_the_engine_match_each_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def limited(patterns: Iterable[str]) -> Callable[[bytes], Sequence[int] | None]:
        found = list(patterns)
        if len(found) > 1:
            raise re2.error("failed to compile Set")
        return signatures.compile_set(found)

    line = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
    [expected] = Scanner(signatures.packaged()).scan(line)
    monkeypatch.setattr(scan, "compile_set", limited)
    [found] = Scanner(signatures.packaged()).scan(line)
    assert {hit.id for hit in found.hits} == {hit.id for hit in expected.hits} >= {"nvidia.ecc-cuda"}


@pytest.mark.parametrize("header", ["", "2026-05-24T12:00:00Z ", "[rank3]: ", "1780000000 "])
def test_the_beginning_of_a_message_is_read_behind_the_header_of_its_line(header: str) -> None:
    [found] = SCANNER.scan(f"{header}Terminated\n")
    assert "shell.terminated" in [hit.id for hit in found.hits]
