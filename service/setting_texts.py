"""What the text of any setting must not be, before it is read as a number, a path or a list."""

from unicodedata import category

_NOT_SHOWN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # Unicode categories: controls, directions, surrogates, line separators


def wrong_text(value: str, *, may_be_empty: bool, secret: bool) -> str | None:
    """What was expected instead of a text that no setting may have; None if it may be the value of this setting.

    Args:
        value: the text of the environment variable.
        may_be_empty: of a list: without entries.
        secret: any characters may be part of a password.
    """
    if not may_be_empty and not value.strip():
        return "a value that is not empty; leave the variable out to use the default"
    if not secret and any(category(letter) in _NOT_SHOWN for letter in value):
        return "a text without control characters and characters that are not shown"
    return None
