"""Whether a text holds a name as a word."""


def is_word_in(name: str, text: str) -> bool:
    """Whether a name is in a text, with no letter or digit after it."""
    at = text.find(name)
    while at >= 0:
        if not text[at + len(name) : at + len(name) + 1].isalnum():
            return True
        at = text.find(name, at + 1)
    return False


def is_whole_word_in(name: str, text: str) -> bool:
    """Whether a name is in a text, with no letter or digit before or after it."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not text[max(0, at - 1) : at].isalnum() and not text[end : end + 1].isalnum():
            return True
        at = text.find(name, at + 1)
    return False
