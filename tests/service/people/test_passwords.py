import threading

import pytest

from service.errors import InvalidInput, Unavailable
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


def test_a_new_password_is_rated_in_turn_and_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """72 signs that stand for letters took 2 s of a processor, and any number of requests could ask at once."""
    rated: list[str] = []

    def rate(password: str, user_inputs: list[str]) -> dict[str, int]:
        del user_inputs
        rated.append(password)
        return {"score": 4}

    monkeypatch.setattr("zxcvbn.zxcvbn", rate)
    signs = "4@8({[<369&!1/|0$5+7%2" * 4
    assert passwords.verify(passwords.hash_password(signs), signs)
    assert [len(one) for one in rated] == [32]
    taken = threading.BoundedSemaphore(1)
    monkeypatch.setattr(passwords, "_admitted", taken)
    with taken, pytest.raises(Unavailable):
        passwords.hash_password(signs)
    assert len(rated) == 1


def test_a_stored_hash_costs_what_the_standard_recommends() -> None:
    """RFC 9106, section 4: the recommended option for little memory."""
    assert PRODUCTION_HASHER().hash("correct horse battery").startswith("$argon2id$v=19$m=65536,t=3,p=4$")
