import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.logs.excerpt import Excerpt, Window

TAIL = 4096


def windows(log: bytes, piece: int = 1000, *, whole: bool = True) -> list[Window]:
    excerpt = Excerpt(TAIL, whole=whole)
    for start in range(0, len(log), piece):
        excerpt.feed(log[start : start + piece])
    return excerpt.windows()


def lines(count: int, word: str = "step") -> bytes:
    return b"".join(f"{word} {number}\n".encode() for number in range(1, count + 1))


def test_a_short_log_is_kept_whole() -> None:
    assert windows(b"a\nb\n") == [Window(b"a\nb\n", 1)]
    assert windows(b"") == [Window(b"", 1)]


def test_of_a_long_log_without_errors_the_end_is_kept_from_the_start_of_a_line() -> None:
    log = lines(2000)
    [end] = windows(log)
    assert log.endswith(end.data)
    assert TAIL - 20 < len(end.data) <= TAIL
    assert end.data.startswith(f"step {end.first_line}\n".encode())


@pytest.mark.parametrize("piece", [17, 1000, 4096, 100_000])
def test_the_first_error_is_kept_with_what_led_to_it(piece: int) -> None:
    log = lines(1000) + b"Traceback (most recent call last)\nKeyError: 1\n" + lines(2000, "after")
    around, end = windows(log, piece)
    assert b"step 1000\nTraceback (most recent call last)\nKeyError: 1\nafter 1\n" in around.data
    assert around.first_line is not None
    assert around.data.startswith(f"step {around.first_line}\n".encode())
    assert end.first_line is not None
    assert end.data.startswith(f"after {end.first_line - 1002}\n".encode())


def test_a_strong_word_wins_over_an_earlier_weak_one() -> None:
    log = lines(500) + b"ERROR harmless\n" + lines(1000) + b"Segmentation fault\n" + lines(1000)
    around, _ = windows(log)
    assert b"Segmentation fault" in around.data
    around, _ = windows(log.replace(b"Segmentation fault", b"still all fine ..."))
    assert b"ERROR harmless" in around.data


def test_an_error_in_the_end_needs_no_window_of_its_own_and_one_close_to_it_joins() -> None:
    [end] = windows(lines(2000) + b"Segmentation fault\n")
    assert end.data.endswith(b"Segmentation fault\n")
    log = lines(1000) + b"Segmentation fault\n" + b"x" * 60 + b"\n" + lines(420, "after")
    [joined] = windows(log)
    assert b"Segmentation fault" in joined.data
    assert joined.data in log
    assert joined.first_line is not None
    assert joined.data.startswith(f"step {joined.first_line}\n".encode())


def test_of_the_end_of_a_huge_log_line_numbers_are_not_known() -> None:
    assert all(window.first_line is None for window in windows(lines(2000), whole=False))


def test_an_endless_line_is_cut_and_says_so() -> None:
    [end] = windows(b"x" * 50_000)
    assert end.data == b"x" * TAIL
    assert (end.in_line, end.cut) == (True, True)


@given(
    st.lists(
        st.sampled_from([b"step\n", b"ERROR\n", b"Segmentation fault\n", b"x" * 300, b"\n", b"y " * 200]), max_size=80
    ),
    st.integers(1, 5000),
    st.booleans(),
)
def test_windows_are_pieces_of_the_log_with_the_right_line_numbers(parts: list[bytes], piece: int, whole: bool) -> None:
    log = b"".join(parts)
    found = windows(log, piece, whole=whole)
    assert log.endswith(found[-1].data)
    assert len(found) in {1, 2}
    for window in found:
        assert len(window.data) <= TAIL + TAIL // 8
        assert (window.first_line is None) is not whole
        if whole and not window.in_line and window.data:
            assert window.first_line is not None
            after = b"".join(line + b"\n" for line in log.split(b"\n")[window.first_line - 1 :])
            assert after.startswith(window.data)
    if b"Segmentation fault" in log:
        assert any(b"Segmentation fault" in window.data for window in found)
