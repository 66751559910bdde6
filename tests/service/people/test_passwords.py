import pytest

from service.errors import InvalidInput
from service.people import passwords

PRODUCTION_HASHER = passwords._hasher  # before a fixture replaces it with a cheaper one


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


def test_a_stored_hash_costs_what_the_standard_recommends() -> None:
    """RFC 9106, section 4: the recommended option for little memory."""
    assert PRODUCTION_HASHER().hash("correct horse battery").startswith("$argon2id$v=19$m=65536,t=3,p=4$")
