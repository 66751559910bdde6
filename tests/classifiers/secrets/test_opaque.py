"""Secrets of services that no list has are removed by their shape; hashes, ids and symbols of the same length stay."""

import random
import time

import pytest

from classifiers.redaction import redact
from classifiers.secrets.finder import PLACEHOLDER

SMALL = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
HEX = "0123456789abcdef"
ALL = SMALL + SMALL.upper() + DIGITS
RECALL = 0.97
NUMBER = 200


def drawn(chance: random.Random, letters: str, count: int) -> str:
    return "".join(chance.choices(letters, k=count))


@pytest.mark.parametrize(
    ("before", "letters", "length", "context"),
    [
        ("qzx_", ALL, 24, "uploading with %s now"),
        ("zork_live_", ALL, 32, '{"x": "%s"}'),
        ("wq-", ALL + "-_", 43, "x %s"),
        ("qzx_", SMALL + DIGITS, 32, "\x1b[32m%s\x1b[0m"),
        ("zork_pat_", HEX, 40, "line one\\n%s\\nline two"),
        ("zork-", HEX, 40, "login with %s"),
        ("", ALL, 36, "%s"),
        ("", ALL, 24, "the token is %s"),
        ("qzx.v1.", ALL, 40, "[rank0]: X=%s"),
    ],
)
def test_a_random_word_of_an_unknown_service_is_removed(before: str, letters: str, length: int, context: str) -> None:
    chance = random.Random(3)
    bodies = [drawn(chance, letters, length) for _ in range(NUMBER)]
    left = [body for body in bodies if body[4:16] in redact(context % (before + body))]
    assert len(left) <= (1 - RECALL) * NUMBER, left


@pytest.mark.parametrize(
    ("line", "letters", "length"),
    [
        ("commit %s login", HEX, 40),
        ("sha256:%s token", HEX, 64),
        ("run-%s token", HEX, 32),
        ("chatcmpl-%s took 0.4 s, tokens 512", ALL, 29),
        ("SHA256:%s ana@login1 (ED25519)", ALL, 43),
        ("HostId: %s=", ALL, 75),
        ("data:image/png;base64,%s==", ALL, 300),
        ("/root/.triton/cache/%s/kernel.cubin", SMALL.upper() + DIGITS, 52),
        ("cache key %s miss", SMALL + DIGITS, 52),
        ("-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----", ALL, 64),
        ("undefined symbol: _ZN3c10%sEv", "aTNbE1S2c", 40),
        ("request %s served", ALL, 22),
    ],
)
def test_a_random_word_that_is_a_hash_or_an_id_stays(line: str, letters: str, length: int) -> None:
    chance = random.Random(4)
    lines = [line % drawn(chance, letters, length) for _ in range(NUMBER)]
    assert [one for one in lines if redact(one) is not one] == []


@pytest.mark.parametrize(
    "line",
    [
        "transformer_outputs: BaseModelOutputWithPastAndCrossAttentions = self.transformer(",
        "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel",
        "tokenizer Llama-2-7b-chat-hf-GPTQ-Int4-566, token budget Exp42-ViT-Large-Patch16-465",
        "GPU-eac66d61-f7e1-1724-1bd4-d8426a3b721e token client",
        "bucket QXJ0aWZhY3RDb2xsZWN0aW9uOjEyMzQ1Njc4OTA= of the artifact",
    ],
)
def test_names_and_symbols_stay(line: str) -> None:
    assert redact(line) is line


def test_the_base64_of_a_random_word_goes_with_it() -> None:
    assert redact("using qzx_Aq81KzhP0xTm37Wv+Yt/Lk29sQ== now") == f"using {PLACEHOLDER} now"


@pytest.mark.parametrize("word", ["%s ", "ab_%s ", "%s.", "login ab-%s ", "sha256:%s ", "%s+", "\u00e9%s"])
def test_a_text_of_random_words_alone_takes_time_in_proportion(word: str) -> None:
    chance = random.Random(5)
    text = "".join(word % drawn(chance, ALL, 21) for _ in range(10_000))

    def seconds(characters: int) -> float:
        began = time.process_time()
        redact(text[:characters])
        return time.process_time() - began

    seconds(20_000)
    assert seconds(160_000) < 20 * max(seconds(20_000), 0.02)
