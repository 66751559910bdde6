"""Secrets as they stand in logs, commands and files are removed; ordinary lines of jobs stay as they are.

`secrets.jsonl` has a text a line, as JSON; each «kind length» in it is a secret, filled with random characters: h
hexadecimal digits, d digits, a letters and digits, b base64, w base64 of addresses, p a password, u a UUID, and = the
text itself. `ordinary.txt` has a line of a job a line.
"""

import json
import random
import re
import time
from pathlib import Path
from typing import Any

import pytest

from classifiers.redaction import has_secret, redact, redact_json
from classifiers.secrets.finder import PLACEHOLDER

TEXTS = Path(__file__).parents[2] / "data" / "secret_texts"
TEMPLATES: list[str] = [json.loads(line) for line in (TEXTS / "secrets.jsonl").read_text().splitlines()]
ORDINARY = (TEXTS / "ordinary.txt").read_text().splitlines()
_HEX = "0123456789abcdef"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_CHARACTERS = {"h": _HEX, "d": "123456789", "a": _LETTERS, "b": _LETTERS + "+/", "w": _LETTERS + "_-", "p": _LETTERS}
_PLACE = re.compile("«([=hdabwpu])([^»]*)»")
SHOWN = 12  # characters of a secret that must not stay


def filled(template: str, chance: random.Random) -> tuple[str, list[str]]:
    """The text with random secrets, and these."""
    secrets: list[str] = []

    def value(hit: re.Match[str]) -> str:
        kind, rest = hit[1], hit[2]
        if kind == "=":
            secrets.append(rest)
        elif kind == "u":
            secrets.append("-".join("".join(chance.choices(_HEX, k=count)) for count in (8, 4, 4, 4, 12)))
        elif kind == "p":
            secrets.append("".join(chance.choices(_LETTERS, k=int(rest) - 3)) + chance.choice("!#*") + "42")
        else:
            secrets.append("".join(chance.choices(_CHARACTERS[kind], k=int(rest))))
        return secrets[-1]

    return _PLACE.sub(value, template), secrets


def pieces(secret: str) -> set[str]:
    length = min(len(secret), SHOWN)
    return {secret[begin : begin + length] for begin in range(len(secret) - length + 1)}


def test_nothing_of_a_secret_stays() -> None:
    chance = random.Random(5)
    left = []
    for template in TEMPLATES:
        text, secrets = filled(template, chance)
        cleaned = redact(text)
        if any(piece in cleaned for secret in secrets for piece in pieces(secret)) or redact(cleaned) != cleaned:
            left.append((text, cleaned))
    assert len(TEMPLATES) >= 250
    assert not left


def test_a_secret_hides_no_other_one_near_it() -> None:
    chance = random.Random(7)
    made = [filled(template, chance) for template in TEMPLATES]
    chance.shuffle(made)
    for between in ("\n", " ; "):
        cleaned = redact(between.join(text for text, _ in made))
        assert [secret for _, secrets in made for secret in secrets if len(secret) >= SHOWN and secret in cleaned] == []


def test_ordinary_lines_of_jobs_stay() -> None:
    assert len(ORDINARY) >= 1_500
    assert [(line, redact(line)) for line in ORDINARY if redact(line) is not line] == []
    whole = "\n".join(ORDINARY)
    assert redact(whole) is whole


def test_a_quote_that_is_never_closed_hides_only_its_line() -> None:
    text = '{"message": "RuntimeError: password=\'hunter2\\nTraceback: CUDA out of memory\\n", "rank": 3}'
    assert redact(text) == text.replace("hunter2", PLACEHOLDER)


def test_an_argument_after_the_flag_of_a_secret_is_one() -> None:
    value = {"args": ["train", "--hub-token", "abc123", "--max-tokens", "512", "--password", "--lr", "1"]}
    clean = ["train", "--hub-token", PLACEHOLDER, "--max-tokens", "512", "--password", "--lr", "1"]
    assert has_secret(value)
    assert redact_json(value) == {"args": clean}
    assert redact_json(tuple(value["args"])) == tuple(clean)


@pytest.mark.parametrize(
    "name",
    [
        "SECRET_KEY",
        "secretKey",
        "JWT_SIGNING_KEY",
        "license_key",
        "accessToken",
        "DB_PASS",
        "auth_key",
        "bindpw",
        "dbpass",
        "pw",
    ],
)
def test_a_key_is_a_secret_by_its_name(name: str) -> None:
    assert redact_json({name: "abc", f"{name}_file": "/run/key"}) == {name: PLACEHOLDER, f"{name}_file": "/run/key"}


def test_a_pass_beside_a_user_is_a_password() -> None:
    value = {"login": "ana", "pass": "abc"}
    assert has_secret(value)
    assert redact_json(value) == {"login": "ana", "pass": PLACEHOLDER}
    assert redact_json({"pass": "abc", "step": "1"}) == {"pass": "abc", "step": "1"}


def test_a_variable_of_a_container_is_a_secret_by_its_name() -> None:
    value: dict[str, Any] = {
        "env": [{"name": "WANDB_API_KEY", "value": "abc123"}, {"name": "NCCL_DEBUG", "value": "INFO"}]
    }
    assert has_secret(value)
    assert redact_json(value) == {
        "env": [{"name": "WANDB_API_KEY", "value": PLACEHOLDER}, {"name": "NCCL_DEBUG", "value": "INFO"}]
    }


@pytest.mark.parametrize(
    "repeated",
    [
        *("pa-", "pa-_a", "://a:", "secret", "password value", "mysql ", "/t/\\u001b[32m", '"token: " x '),
        *("['a', '-b', ", "a\0-b", ' a1="-', "70617373776f7264"),
    ],
)
def test_the_time_of_a_text_of_beginnings_grows_with_its_length(repeated: str) -> None:
    def seconds(characters: int) -> float:
        text = repeated * (characters // len(repeated))
        began = time.process_time()
        redact(text)
        return time.process_time() - began

    seconds(20_000)
    assert seconds(160_000) < 20 * max(seconds(20_000), 0.02)
