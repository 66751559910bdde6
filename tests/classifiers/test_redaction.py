import random
import time
from collections.abc import Iterator
from string import ascii_letters, digits
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.redaction import has_secret, redact, redact_json
from classifiers.secrets import finder
from classifiers.secrets.finder import PLACEHOLDER, SecretFinder
from classifiers.secrets.opaque import OpaqueWords

SECRETS = {
    "export WANDB_API_KEY=%s": "0123456789abcdef0123456789abcdef01234567",
    "postgresql://trainer:%s@db.lab.example/runs": "pa55-w0rd",
    "Authorization: Bearer %s": "q8Zt.abcdef0123456789",
    '"Authorization": "Basic %s"': "dXNlcjpwYXNzd29yZDEyMw==",
    "AWS_SECRET_ACCESS_KEY=%s": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "found key %s in the environment": "AKIAIOSFODNN7EXAMPLE",
    "HF token %s is valid": "hf_abcdefghijklmnopqrstuvwxyz0123",
    "password: %s": "hunter2!",
    "MYSQL_PASSWORD='%s'": "correcthorse",
    "curl --token %s --tokenizer gpt2": "s3cr3tvalue",
    "git clone https://%s@github.com/lab/repo": "ghs_abcdefghijklmnopqrst1234",
    "jwt eyJ%s": "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.c2lnbmF0dXJlLXZhbHVl",
    "https://store.example/blob?sv=2024&sig=%s&se=1": "4aBcD%2FEfGhIjKlMnOpQrStUvWx",
    "-----BEGIN RSA PRIVATE KEY-----\n%s\n-----END RSA PRIVATE KEY-----": "MIIEowIBAAKCAQEA7\nabcdefghij",
    "AccountKey=%s;EndpointSuffix=core": "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA==",
    'config {"client_secret": "%s"}': "aaa111bbb222",
}
ORDINARY = [
    "max_new_tokens=128 pad_token='<pad>' eos_token_id: 2 num_tokens: 123456 tokens/s",
    'MountVolume.SetUp failed for volume "x" : secret "hf-token" not found',
    "Permission denied (publickey,password).",
    "password: invalid",
    "KeyError: 'token'",
    "tokenizer_name_or_path=meta-llama/Llama-2-7b-hf token=None",
    "cache_key=step-000123-rank4 loss_key=val_loss1",
    "step 100 | loss 2.31 | lr 1e-4 | 1200 tokens per second",
    "task-abcdefghijklmnopqrstuvwxyz disk-usage 91 %",
    "bearer of bad news: rank 3 died",
    "Downloading https://hub.example/models/bert/resolve/main/config.json",
    "[rank0]:[W1120 03:41:11.061 socket.cpp:752] retrying tcp://10.0.0.1:29500",
]


@pytest.mark.parametrize("form", SECRETS)
def test_a_secret_is_removed_and_its_surroundings_are_kept(form: str) -> None:
    secret = SECRETS[form]
    cleaned = redact(form % secret)
    assert secret not in cleaned
    assert PLACEHOLDER in cleaned
    assert cleaned.startswith(form.split("%s", maxsplit=1)[0][:4])


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_lines_are_unchanged(line: str) -> None:
    assert redact(line) is line


@given(st.sampled_from(sorted(SECRETS)), st.text(max_size=60), st.text(max_size=60))
def test_a_secret_is_removed_anywhere_in_a_text(form: str, before: str, after: str) -> None:
    text = f"{before}\n{form % SECRETS[form]}\n{after}"
    cleaned = redact(text)
    assert SECRETS[form] not in cleaned
    assert redact(cleaned) == cleaned


@given(st.text())
def test_any_text_can_be_redacted_twice(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


def test_a_text_of_many_markers_can_be_redacted() -> None:
    text = "token=" * 50_000 + "://a:" * 50_000
    once = redact(text)
    assert len(once) < len(text)
    assert redact(once) == once


@pytest.mark.parametrize("form", ["password=%s-x ", "qzx_%s\n", "login %s now\n"])
def test_in_a_text_of_nothing_but_secrets_the_rest_is_removed_unread(
    monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """15 MB of them in one event took 11 s."""
    monkeypatch.setattr(finder, "SECRETS_MOST", 20)
    chance = random.Random(1)
    secrets = ["".join(chance.choices(ascii_letters + digits, k=24)) for _ in range(200)]
    text = "".join(form % one for one in secrets) + "the end\n"
    once = redact(text)
    assert not [one for one in secrets if one[4:12] in once]
    assert 10 < once.count(PLACEHOLDER) < 25
    assert once.count("\n") == text.count("\n")
    assert redact(once) == once
    few = "".join(form % one for one in secrets[:20]) + "the end\n"
    assert redact(few).endswith("the end\n")


@pytest.mark.parametrize("form", ["password=%s-x", "qzx_%s"])
def test_the_texts_of_one_value_are_one_text_for_the_number_of_secrets(
    monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Secrets divided over a thousand labels took 13 s and 0.4 GiB."""
    monkeypatch.setattr(finder, "SECRETS_MOST", 20)
    chance = random.Random(1)
    secrets = ["".join(chance.choices(ascii_letters + digits, k=24)) for _ in range(200)]
    looked_at = 0
    known = SecretFinder._known

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal looked_at
        looked_at += 1
        return known(*given, **named)

    monkeypatch.setattr(SecretFinder, "_known", counted)
    clean = redact_json({"few": "a line", "labels": [form % one for one in secrets], "last": {"x": "the end"}})
    assert not [one for one in secrets if one[4:12] in str(clean)]
    assert clean["few"] == "a line"
    assert list(clean.values())[-1] == {PLACEHOLDER: PLACEHOLDER}
    assert looked_at < 60
    assert redact_json({"labels": [form % one for one in secrets[:15]], "last": "the end"})["last"] == "the end"


def test_what_follows_very_many_names_without_a_secret_is_removed_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """16 MB of nothing but such names took half a minute for each of three passes."""
    monkeypatch.setattr(finder, "MARKERS_MOST", 500)
    clean = redact_json({"a": ["api_key of it"] * 100, "b": "the end"})
    assert clean == {"a": ["api_key of it"] * 100, "b": "the end"}
    many = {"a": ["api_key of it"] * 1000, "b": "the end"}
    clean = redact_json(many)
    assert clean["a"][100] == "api_key of it"
    assert (clean["a"][-1], list(clean.values())[-1]) == (PLACEHOLDER, PLACEHOLDER)
    assert has_secret(many), "it is not known, and the value is searched"
    assert redact(" ".join(many["a"])).endswith(PLACEHOLDER)


@pytest.mark.parametrize("name", ["AzFu", "secret", "account.key", "Q~", "AZDO", "eyJ" * 1300 + ". "])
def test_no_marker_takes_much_longer_than_others(name: str) -> None:
    """One kilobyte of some of them took as long as five of others: a log of 16 MB took two minutes."""

    def seconds(text: str) -> float:
        began = time.process_time()
        redact(text)
        return time.process_time() - began

    usual, given = ((one * (100_000 // len(one))) for one in ("api_key ", name))
    seconds(usual[:1000]), seconds(given[:1000])  # patterns are compiled when they are needed first
    assert seconds(given) < 2 * max(seconds(usual), 0.05)


def test_whether_a_value_has_a_secret_is_known_at_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = 0
    spans = OpaqueWords.spans

    def counted(words: OpaqueWords) -> Iterator[tuple[int, int]]:
        nonlocal judged
        for span in spans(words):
            judged += 1
            yield span

    monkeypatch.setattr(OpaqueWords, "spans", counted)
    chance = random.Random(2)
    assert has_secret(["".join(chance.choices(ascii_letters + digits, k=40)) for _ in range(300)])
    assert judged == 1


def test_secrets_in_json_are_removed_by_form_and_by_name() -> None:
    value: Any = {
        "command": "train --token s3cr3tvalue",
        "env": [{"name": "x", "password": "p"}, ("AKIAIOSFODNN7EXAMPLE", 3, None, True)],
        "steps": 100,
        "tokens": "many",
    }
    assert redact_json(value) == {
        "command": f"train --token {PLACEHOLDER}",
        "env": [{"name": "x", "password": PLACEHOLDER}, (PLACEHOLDER, 3, None, True)],
        "steps": 100,
        "tokens": "many",
    }


@given(
    st.recursive(
        st.sampled_from([form % secret for form, secret in SECRETS.items()]) | st.text() | st.none() | st.integers(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["password", "api_key", "name", "a b"]) | st.text(), inner)
        ),
        max_leaves=6,
    )
)
def test_has_secret_misses_no_secret(value: Any) -> None:
    if redact_json(value) != value:
        assert has_secret(value)


def test_ordinary_values_have_no_secret() -> None:
    assert not has_secret({"name": "train", "labels": {"team": "vision"}, "nodes": ["gpu001"], "logs": [{"rank": 0}]})


def test_a_key_block_across_two_strings_may_be_a_secret() -> None:
    assert has_secret(["-----BEGIN PRIVATE KEY-----", "MIIEvQ"])


def test_a_password_after_a_name_that_is_not_ascii_is_found_before_it_is_removed() -> None:
    value = {"note": "密码: Pingv1n.46xten"}
    assert has_secret(value)
    assert redact_json(value) == {"note": "密码: [redacted]"}
