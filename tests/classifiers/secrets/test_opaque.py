"""Secrets of services that no list has are removed by their shape; hashes, ids and symbols of the same length stay."""

import base64
import json
import random
import time

import pytest

from classifiers.redaction import redact
from classifiers.secrets.finder import PLACEHOLDER
from tests.classifiers.secrets.samples import sample, without_lookarounds

SMALL = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
HEX = "0123456789abcdef"
ALL = SMALL + SMALL.upper() + DIGITS
RECALL = 0.97
# Formats of services that need no entry of their own: their beginning, and what follows it.
SERVICES = {
    "Notion integration token, old form": ("secret_", r"[A-Za-z0-9]{43}"),
    "Heroku API key, second form": ("HRKU-AA", r"[0-9a-zA-Z_-]{58}"),
    "Scalingo API token": ("tk-us-", r"[\w-]{48}"),
    "Prefect API key": ("pnu_", r"[A-Za-z0-9]{36}"),
    "GitLab agent token": ("glagent-", r"[\w-]{50,80}"),
    "GitLab OAuth secret": ("gloas-", r"[\w-]{64}"),
    "npm token": ("npm_", r"[A-Za-z0-9]{30,255}"),
    "PyPI upload token": ("pypi-AgE", r"[\w-]{50,1000}"),
    "Clojars token": ("CLOJARS_", r"[A-Za-z0-9]{60}"),
    "Linear API key": ("lin_api_", r"[A-Za-z0-9]{40}"),
    "Pinecone API key": ("pcsk_", r"[A-Za-z0-9]{5,8}_[A-Za-z0-9]{50,70}"),
    "Jina API key": ("jina_", r"[A-Za-z0-9_-]{50,70}"),
    "RunPod API key": ("rpa_", r"[A-Za-z0-9]{40,50}"),
    "LlamaCloud API key": ("llx-", r"[A-Za-z0-9]{40,60}"),
    "Apify API token": ("apify_api_", r"[A-Za-z0-9]{36}"),
    "Xata API key": ("xau_", r"[A-Za-z0-9]{30,50}"),
    "Mem0 API key": ("m0-", r"(?=[A-Za-z]{0,39}\d)[A-Za-z0-9]{40}\b"),
    "Perplexity API key": ("pplx-", r"[A-Za-z0-9]{48}"),
    "Replicate API token": ("r8_", r"[A-Za-z0-9]{37}"),
    "xAI API key": ("xai-", r"[A-Za-z0-9]{60,120}"),
    "NVIDIA API key": ("nvapi-", r"[\w-]{40,120}"),
    "Grafana service account token": ("glsa_", r"[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
    "Adobe client secret": ("p8e-", r"[A-Za-z0-9]{32}"),
    "Datadog personal access token": ("ddpat_", r"[A-Za-z0-9]{22}_[A-Za-z0-9]{40}"),
    "Square OAuth secret": ("sq0csp-", r"[\w-]{43}"),
    "PostHog personal API key": ("phx_", r"[A-Za-z0-9]{40,50}"),
    "CircleCI personal token": ("CCIPAT_", r"[A-Za-z0-9]{22}_[a-f0-9]{40}"),
    "CircleCI project token": ("CCIPRJ_", r"[A-Za-z0-9]{22}_[a-f0-9]{40}"),
    "Segment API token": ("sgp_", r"[A-Za-z0-9]{64}"),
    "Deno Deploy token": ("ddp_", r"[A-Za-z0-9]{36}"),
    "CockroachDB Cloud key": ("CCDB1_", r"[A-Za-z0-9]{22}_[A-Za-z0-9]{40}"),
    "Vercel personal token": ("vcp_", r"[A-Za-z0-9]{50,60}"),
    "Vercel AI Gateway key": ("vck_", r"[A-Za-z0-9]{50,60}"),
    "Slack refresh token": ("xoxe-", r"\d-[A-Za-z0-9]{140,180}"),
    "Slack configuration token": ("xoxe.xox", r"[bp]-\d-[A-Za-z0-9]{160,180}"),
    "Statsig secret key": ("secret-", r"(?=[A-Za-z0-9]{0,59}\d)(?=[A-Za-z0-9]{0,59}[A-Z])[A-Za-z0-9]{40,60}\b"),
}
NUMBER = 200
CONTEXTS = (
    "%s",
    "https://a.example/%s/x",
    '{"x": "%s"}',
    "run id %s",
    "one\\n%s\\ntwo",
    "GET /v1?k=%s&b=1",
    "[rank0]: X=%s.",
)


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


def test_known_formats_without_an_entry_are_removed() -> None:
    chance = random.Random(6)
    left = []
    total = 0
    for number in range(60):
        for name, (before, rest) in SERVICES.items():
            text, _ = sample(without_lookarounds(rest), chance)
            total += 1
            if text[:12] in redact(CONTEXTS[number % len(CONTEXTS)] % (before + text)):
                left.append(f"{name}: {before}{text}")
    assert len(left) <= 0.01 * total, left


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
        ("host key SHA256:%s added", ALL + "_-", 43),
        ("sha3-384: %s of the snap", ALL, 64),
        ("upload-id: UM-%s", ALL + "_-", 86),
        ("assistant asst_%s ready", ALL, 24),
        ("app ap-%s deployed", ALL, 22),
        ("script-src 'nonce-%s=='", ALL, 22),
        ("proto payload %s", ALL, 64),
        ("Cache restored from key: Linux-node-%s", HEX, 64),
        ("checksum/secret: %s", HEX, 64),
        ("public_key=%s=", ALL, 43),
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
        "dask: mean_chunk-98a32cd9f4fadbed908fffb32e0c9679 <Future: key: add-8f6e709446674bad78ea8aeecfee188e>",
        "kubernetes.client.models.v1beta1_device_class_list import V1beta1DeviceClassList, token PKCS12PrivateKeyTypes",
        "GPU-eac66d61-f7e1-1724-1bd4-d8426a3b721e token client",
        "bucket QXJ0aWZhY3RDb2xsZWN0aW9uOjEyMzQ1Njc4OTA= of the artifact",
        "launcher world_info=eyJncHUwMCI6IFswLCAxLCAyLCAzXX0=",
    ],
)
def test_names_and_symbols_stay(line: str) -> None:
    assert redact(line) is line


@pytest.mark.parametrize("line", ["object train/%s of 12 MB", "nanoid %s", "video %s can not be decoded"])
def test_the_begin_of_an_id_in_base64_is_no_prefix_of_a_service(line: str) -> None:
    chance = random.Random(9)
    ids = [drawn(chance, SMALL + SMALL.upper(), 5) + "_" + drawn(chance, ALL, 15) for _ in range(NUMBER)]
    changed = [one for one in ids if redact(line % one) != line % one]
    assert len(changed) <= 0.1 * NUMBER, changed


@pytest.mark.parametrize(
    "payload", [{"user": "ana", "token": "x7!"}, {"session": "q8Zt4WzB8nVcu7Qx"}, {"a": "u7Qx2LmP9kRt4WzB8nVc"}]
)
def test_json_in_base64_with_a_secret_is_removed(payload: dict[str, str]) -> None:
    encoded = base64.b64encode(json.dumps(payload).encode()).decode()
    assert encoded[:20] not in redact(f"state={encoded}")


def test_the_base64_of_a_random_word_goes_with_it() -> None:
    assert redact("using qzx_Aq81KzhP0xTm37Wv+Yt/Lk29sQ== now") == f"using {PLACEHOLDER} now"


@pytest.mark.parametrize("word", ["%s ", "ab_%s ", "%s.", "login ab-%s ", "sha256:%s ", "%s+", "\u00e9%s", "ab_%s/"])
def test_a_text_of_random_words_alone_takes_time_in_proportion(word: str) -> None:
    chance = random.Random(5)
    text = "".join(word % drawn(chance, ALL, 21) for _ in range(10_000))

    def seconds(characters: int) -> float:
        began = time.process_time()
        redact(text[:characters])
        return time.process_time() - began

    seconds(20_000)
    assert seconds(160_000) < 20 * max(seconds(20_000), 0.02)
