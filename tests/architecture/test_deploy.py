"""The board and the alerts ask for metrics that the service has."""

import json
import re
from pathlib import Path

import pytest

from service.telemetry import Telemetry

DEPLOY = Path(__file__).parents[2] / "deploy"
ASKED = re.compile(r"\bfaultline_[a-z_]+")


def metrics() -> set[str]:
    found = set()
    for metric in Telemetry().registry.collect():
        found |= {metric.name, f"{metric.name}_total", f"{metric.name}_bucket", f"{metric.name}_count"}
    return found


@pytest.mark.parametrize("path", ["grafana/faultline.json", "prometheus/alerts.yaml"])
def test_only_metrics_that_exist_are_asked_for(path: str) -> None:
    text = (DEPLOY / path).read_text(encoding="utf-8")
    asked = set(ASKED.findall(text))
    assert asked
    assert asked <= metrics()


def test_the_board_is_sound_json_whose_panels_do_not_overlap() -> None:
    board = json.loads((DEPLOY / "grafana" / "faultline.json").read_text(encoding="utf-8"))
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells
