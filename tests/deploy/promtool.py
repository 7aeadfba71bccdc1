"""Prometheus' own tool as the judge of what `deploy/` holds: of rules, of alerts over series, and of a scraped text."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "recado.rules.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "recado.json"
INSTANCE = "here:8080"
SCRAPED = {"instance": INSTANCE, "job": "recado"}
"""What Prometheus adds to each series of the service."""
STEP = "1m"
_LIMIT = 60  # seconds

Expected = Mapping[str, Any]


def run(*arguments: str | Path, text: str | None = None) -> "subprocess.CompletedProcess[str]":
    """One run of promtool; `text` is its standard input."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    return subprocess.run(
        [program, *arguments], input=text, capture_output=True, text=True, timeout=_LIMIT, check=False
    )


@cache
def alerts() -> dict[str, Any]:
    """The rules by their names."""
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def panels() -> list[Any]:
    """Those of the dashboard that show something."""
    return [panel for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"] if panel["type"] != "row"]


def shown() -> list[str]:
    """Each expression of the dashboard, with what Grafana puts in place of its variables."""
    written = [target["expr"] for panel in panels() for target in panel["targets"]]
    return [each.replace("$__rate_interval", "5m").replace("$instance", ".+") for each in written]


def expressions() -> list[str]:
    """Each expression of dashboard and alerts."""
    return [*shown(), *(rule["expr"] for rule in alerts().values())]


def fired(alert: str, labels: Mapping[str, str]) -> Expected:
    """An alert of the rules as promtool expects it, about what has these labels."""
    rule = alerts()[alert]
    texts = {
        name: re.sub(r"{{ \$labels\.(\w+) }}", lambda found: labels[found[1]], text)
        for name, text in rule["annotations"].items()
    }
    return {"exp_labels": {**labels, **rule["labels"]}, "exp_annotations": texts}


def looked_at(alert: str, when: str, *found: Expected) -> dict[str, Any]:
    """What promtool shall find of an alert at a moment: these, and no others."""
    return {"alertname": alert, "eval_time": when, "exp_alerts": list(found)}


def about(name: str, series: Mapping[str, str], looks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A test of promtool's: `series` by name and labels, with their values a minute apart."""
    given = [{"series": labelled, "values": values} for labelled, values in series.items()]
    return {"name": name, "interval": STEP, "input_series": given, "alert_rule_test": list(looks)}


def judged(folder: Path, tests: Sequence[Mapping[str, Any]]) -> "subprocess.CompletedProcess[str]":
    """The verdict of `promtool test rules` on the rules as they are."""
    file = folder / "alerts.test.yml"
    file.write_text(
        yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": STEP, "tests": list(tests)}, width=1_000)
    )
    return run("test", "rules", file)
