"""What operators copy fits the service: metrics of board and alerts, settings of the sample environment."""

import json
import re
from pathlib import Path

import pytest
import yaml

import service.telemetry
from service import settings
from service.hooks.options import HookOptions
from service.telemetry import Telemetry

DEPLOY = Path(__file__).parents[2] / "deploy"
SERVICE = Path(service.telemetry.__file__).parent
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


def test_each_metric_is_set_somewhere() -> None:
    """An alert on a metric that nothing sets can never fire, or always does."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in SERVICE.rglob("*.py") if path.name != "telemetry.py")
    assert {name for name in vars(Telemetry()) if f"telemetry.{name}" not in code} == set()


def test_the_board_is_sound_json_whose_panels_do_not_overlap() -> None:
    board = json.loads((DEPLOY / "grafana" / "faultline.json").read_text(encoding="utf-8"))
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_the_chart_has_the_same_alerts() -> None:
    """A chart installs only files of its own folder, so that it needs a copy."""
    copy = DEPLOY / "kubernetes" / "faultline" / "files" / "alerts.yaml"
    assert copy.read_bytes() == (DEPLOY / "prometheus" / "alerts.yaml").read_bytes()


def test_the_broker_of_the_compose_file_keeps_its_data_in_its_volume() -> None:
    """By default the image keeps them in the container, and they are lost when it is created again."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    kafka = compose["services"]["kafka"]
    name, _, folder = kafka["volumes"][0].partition(":")
    assert name in compose["volumes"]
    assert kafka["environment"].get("KAFKA_LOG_DIRS") == folder


def test_the_service_takes_the_sample_environment() -> None:
    lines = (DEPLOY / "systemd" / "environment").read_text(encoding="utf-8").splitlines()
    given = dict(line.removeprefix("#").split("=", 1) for line in lines if re.match(r"#?FAULTLINE_\w+=", line))
    assert {"FAULTLINE_DATABASE_URL", "FAULTLINE_LOG_ROOTS", "FAULTLINE_DELIVERY_FILE"} <= set(given)
    assert settings.read(given).log_roots == ("/scratch/logs",)


def test_the_hooks_can_run_on_one_machine() -> None:
    """Each locks the folder of its journal."""
    units = [path.read_text(encoding="utf-8") for path in sorted(DEPLOY.glob("hooks/*.service"))]
    folders = [folder for unit in units for folder in re.findall(r"^StateDirectory=(\S+)$", unit, re.MULTILINE)]
    assert len(set(folders)) == len(units) == 2
    default = str(HookOptions.model_fields["state_dir"].default)
    used = {
        (re.findall(r"^Environment=FAULTLINE_HOOK_STATE_DIR=(\S+)$", unit, re.MULTILINE) or [default])[0]
        for unit in units
    }
    assert used == {f"/var/lib/{folder}" for folder in folders}


@pytest.mark.parametrize(
    "unit", [*DEPLOY.glob("systemd/*.service"), *DEPLOY.glob("hooks/*.service")], ids=lambda unit: unit.name
)
def test_a_unit_names_no_documentation_that_nothing_installs(unit: Path) -> None:
    assert "Documentation=file:" not in unit.read_text(encoding="utf-8")
