"""The error that a structured logger keeps in fields of its own is read with the message."""

import json
from typing import Any

import pytest

from classifiers.extraction.envelopes import records

STACK = "Traceback (most recent call last):\nKeyError: 'lr'"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"msg": "cannot open manifest", "error": "open /d: no such file", "stacktrace": "main.run\n\t/src/m.go:51"},
            "cannot open manifest: open /d: no such file\nmain.run\n\t/src/m.go:51",
        ),
        ({"msg": "no shard", "err": "EOF"}, "no shard: EOF"),
        (
            {
                "msg": "crashed",
                "err": {"type": "TypeError", "message": "no function", "stack": "TypeError: no function"},
            },
            "crashed\nTypeError: no function",
        ),
        (
            {"message": "failed", "error": {"type": "ValueError", "message": "bad", "stack_trace": STACK}},
            f"failed\n{STACK}",
        ),
        ({"message": "failed", "error": {"type": "ValueError", "message": "bad"}}, "failed\nValueError: bad"),
        (
            {
                "event": "failed",
                "exception": [
                    {
                        "exc_type": "KeyError",
                        "exc_value": "'lr'",
                        "frames": [{"filename": "/t.py", "lineno": 3, "name": "main"}],
                    }
                ],
            },
            "failed\nTraceback (most recent call last):\n  File \"/t.py\", line 3, in main\nKeyError: 'lr'",
        ),
        (
            {
                "text": f"10:01 | ERROR | caught in main:\n{STACK}\n",
                "record": {"message": "caught in main:", "level": {"name": "ERROR"}, "exception": {"type": "KeyError"}},
            },
            f"caught in main:\n{STACK}",
        ),
        ({"msg": "connected", "error": None}, "connected"),
        ({"msg": "connected", "error": ""}, "connected"),
        ({"msg": "connected", "error": False, "err": 0, "exception": []}, "connected"),
        ({"msg": "refused: EOF", "error": "EOF"}, "refused: EOF"),
    ],
    ids=("zap", "slog", "pino", "ECS", "ECS without stack", "structlog", "loguru", "null", "empty", "no error", "same"),
)
def test_the_error_of_a_record_follows_its_message(fields: dict[str, Any], text: str) -> None:
    found = records.read(json.dumps(fields))
    assert found is not None
    assert found.text == text


def test_the_level_of_loguru_is_read() -> None:
    found = records.read(json.dumps({"text": "x", "record": {"message": "x", "level": {"name": "ERROR", "no": 40}}}))
    assert found is not None
    assert found.level == "ERROR"


@pytest.mark.parametrize("value", [[1, 2], [{"exc_type": 3}], [[]], {"type": ["x"]}, {"a": {"b": 1}}, 7, True])
def test_an_error_of_another_form_is_left_out(value: Any) -> None:
    for name in ("error", "err", "exception"):
        found = records.read(json.dumps({"msg": "failed", name: value}))
        assert found is not None
        assert found.text == "failed"
