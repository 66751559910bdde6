"""The verdicts shown in the readme and the guide are those that their commands print."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from service.settings import default_model_dir
from tests.labs.need import missing
from tests.service.explain.documented_output import Example, examples, printed

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOLERANCE = 0.05  # tolerance for probabilities, which differ slightly between machines


def differences(shown: Any, printed: Any, at: str = "") -> list[str]:
    """Describe the shown values that differ. Shown texts may end with "...", lists may be shorter."""
    if isinstance(shown, dict):
        return [found for key, value in shown.items() for found in differences(value, printed.get(key), f"{at}.{key}")]
    if isinstance(shown, list):
        return [
            found
            for number, value in enumerate(shown)
            for found in differences(value, printed[number] if number < len(printed) else None, f"{at}[{number}]")
        ]
    if isinstance(shown, str) and shown.endswith("..."):
        same = isinstance(printed, str) and printed.startswith(shown.removesuffix("..."))
    elif isinstance(shown, float):
        same = printed == pytest.approx(shown, abs=TOLERANCE)
    else:
        same = shown == printed
    return [] if same else [f"{at}: shown {shown!r}, printed {printed!r}"]


def test_the_shown_verdict_is_the_printed_one() -> None:
    model = Path(os.environ.get("FAULTLINE_MODEL_DIR") or default_model_dir())
    if not (model / "manifest.json").exists():
        missing("no trained model (make install)")
    command = re.search(r"^\$ (echo .*?classify -)\n", README, re.MULTILINE | re.DOTALL)
    shown = re.search(r"^```json\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert command
    assert shown
    line = command[1].replace(".venv/bin/faultline", f"{sys.executable} -m service")
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": "."},
    )
    assert done.returncode == 0, done.stderr
    assert differences(json.loads(shown[1]), json.loads(done.stdout)) == []


@pytest.mark.parametrize("example", examples(), ids=lambda one: f"{one.document.name}-{one.log}")
def test_the_shown_explanations_are_the_printed_ones(example: Example) -> None:
    """To renew the documents after training: `python -m tests.service.explain.documented_output`."""
    model = Path(os.environ.get("FAULTLINE_MODEL_DIR") or default_model_dir())
    if not (model / "manifest.json").exists():
        missing("no trained model (make install)")
    shown, output = example.output, printed(example.log)
    percent = re.compile(r"\b(\d+) %")
    assert percent.sub("N %", " ".join(shown.split())) == percent.sub("N %", " ".join(output.split()))
    for one, other in zip(percent.findall(shown), percent.findall(output), strict=True):
        assert int(one) == pytest.approx(int(other), abs=100 * TOLERANCE)
