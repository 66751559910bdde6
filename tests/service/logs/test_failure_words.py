from service.logs.excerpt import first, load_failure_words


def test_the_first_strong_word_is_found() -> None:
    log = b"ok\nTraceback (most recent call last):\nSegmentation fault\n"
    assert first(load_failure_words().strong, log) == 3
    assert first(load_failure_words().strong, b"all well\n") is None


def test_weak_words_are_kept_apart() -> None:
    assert first(load_failure_words().strong, b"ERROR: x") is None
    assert first(load_failure_words().weak, b"an ERROR: x") == 3


def test_the_longest_word_is_known_so_that_none_is_missed_between_pieces() -> None:
    assert load_failure_words().longest >= len(b"Traceback (most recent call last)")
