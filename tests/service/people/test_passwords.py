import pytest

from service.errors import InvalidInput
from service.people import passwords


def test_only_the_correct_password_is_accepted() -> None:
    stored = passwords.hash_password("correct horse battery")
    assert "correct" not in stored
    assert passwords.verify(stored, "correct horse battery")
    assert not passwords.verify(stored, "correct horse batterY")
    assert not passwords.verify(None, "correct horse battery")
    assert not passwords.verify("no hash", "correct horse battery")


@pytest.mark.parametrize("password", ["short", "x" * 201])
def test_an_invalid_length_is_reported_without_the_password(password: str) -> None:
    with pytest.raises(InvalidInput, match="12 to 200 characters") as caught:
        passwords.hash_password(password)
    assert password not in str(caught.value)
