import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.logs.excerpt import Window
from service.logs.text_cleaning import decode, without_beginnings


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\n", "plain\n"),
        ("Größe 5 µs\n".encode(), "Größe 5 µs\n"),
        (b"caf\xe9\n", "caf\ufffd\n"),
        (b"a\x00\x00b\x07\n", "ab\n"),
        (b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\x1b[2K\n", "red x\n"),
        (b"\x1b\n", "\n"),
        (b"windows\r\nlines\r\n", "windows\nlines\n"),
        (b" 10%|#  | 1/9\r 20%|## | 2/9\r100%|###| 9/9\ndone\n", "100%|###| 9/9\ndone\n"),
        (b" 10%|#  |\rRuntimeError: x\r 20%|## |\n", "RuntimeError: x  20%|## |\n"),
        (b"1/9 [=>..]\x08\x08\x08\x082/9 [==>.]\n", "2/9 [==>.]\n"),
        (b"\r\r\r\n", "\n"),
        ("CUDA-Fehler\n".encode("utf-16"), "CUDA-Fehler\n"),
        ("error\n".encode("utf-16-be"), "error\n"),
        ("rror\n".encode("utf-16-le")[1:], "ror\n"),
        (b"\x00" * 10, ""),
        (b"", ""),
    ],
)
def test_bytes_become_lines_that_can_be_read(data: bytes, text: str) -> None:
    assert decode(data).removeprefix("\ufffd") == text


@given(st.binary(max_size=400))
def test_any_bytes_become_text_without_control_characters(data: bytes) -> None:
    text = decode(data)
    text.encode()
    assert not any(ord(letter) < 32 and letter not in "\t\n" for letter in text)


@given(st.text(alphabet="ab \t\r\n\x1b[m0;K\x08", max_size=200))
def test_cleaning_changes_no_line_number_and_cleaning_twice_nothing_more(text: str) -> None:
    once = decode(text.encode())
    assert once.count("\n") == text.count("\n")
    assert decode(once.encode()) == once


def test_the_start_of_a_window_within_a_line_is_dropped() -> None:
    text = "word " * 1000
    assert without_beginnings(text, Window(b"", 1)) == text
    cut = without_beginnings(text, Window(b"", 1, cut=True, in_line=True))
    assert text.endswith(cut)
    assert len(text) - 1100 < len(cut) < len(text) - 1000
    assert len(without_beginnings("x" * 9000, Window(b"", 1, cut=True, in_line=True))) == 9000 - 5120


def test_the_rest_of_a_private_key_is_not_kept() -> None:
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
    text = f"{body}\n{body}\nxyz=\n-----END PRIVATE KEY-----\nstep 1\n{body}\n"
    kept = without_beginnings(text, Window(b"", 7, cut=True))
    assert kept == f"[redacted]\n[redacted]\n[redacted]\n[redacted]\nstep 1\n{body}\n"
    assert without_beginnings(text, Window(b"", 1)) == text


@pytest.mark.parametrize("before", ["2026-11-20T03:41:57.123456789Z stdout F ", "[rank0]: ", "    "])
def test_the_rest_of_a_private_key_behind_a_prefix_is_not_kept(before: str) -> None:
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
    lines = [body, body, "xyz=", "step 1", body]
    kept = without_beginnings("".join(f"{before}{line}\n" for line in lines), Window(b"", 7, cut=True))
    ends = ["[redacted]", "[redacted]", "[redacted]", "step 1", body]
    assert kept == "".join(f"{before}{line}\n" for line in ends)


def test_a_digest_at_the_start_of_a_window_is_kept() -> None:
    text = f"pulled layer {'0a1b' * 16}\nstep 1\n"
    assert without_beginnings(text, Window(b"", 7, cut=True)) == text
