"""The manifest for KubeRay, as far as it can be judged without a Kubernetes: it runs what docs/cluster.md says."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from recado.cluster.cell_service import KEYS
from recado.config.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "deploy" / "kuberay" / "recado.yaml"
PAGE = (ROOT / "docs" / "cluster.md").read_text("utf-8")


def documents() -> tuple[Any, Any]:
    cluster, service = yaml.safe_load_all(MANIFEST.read_text("utf-8"))
    return cluster, service


def groups() -> list[Any]:
    spec = documents()[0]["spec"]
    return [spec["headGroupSpec"], *spec["workerGroupSpecs"]]


def test_each_machine_runs_cells_under_ray_and_its_entry_beside() -> None:
    cluster, service = documents()
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    assert cluster["metadata"]["annotations"] == {"ray.io/overwrite-container-cmd": "true"}
    for group in groups():
        assert json.loads(json.loads(group["rayStartParams"]["resources"].strip("'"))) == {"recado": 2}
        pod = group["template"]
        assert pod["metadata"]["labels"] == service["spec"]["selector"]
        (container,) = pod["spec"]["containers"]
        assert "recado serve --cluster" in container["args"][0]
        (port,) = container["ports"]
        listen = {each["name"]: each["value"] for each in container["env"]}["RECADO_LISTEN"]
        assert listen.rpartition(":")[2] == str(port["containerPort"])
        assert service["spec"]["ports"][0]["targetPort"] == container["readinessProbe"]["httpGet"]["port"] == "api"


def test_the_command_that_the_operator_makes_reaches_ray_word_for_word(tmp_path: Path) -> None:
    """It is one text, with what stands under `rayStartParams` in it as it is, quotes and all."""
    program = tmp_path / "ray"
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    program.chmod(0o755)
    for group in groups():
        (container,) = group["template"]["spec"]["containers"]
        made = "ray start --block " + " ".join(f"--{name}={each}" for name, each in group["rayStartParams"].items())
        done = subprocess.run(
            ["sh", "-c", container["args"][0].splitlines()[-1]], capture_output=True, text=True, check=True,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "KUBERAY_GEN_RAY_START_CMD": made},
        )  # fmt: skip
        arguments = done.stdout.splitlines()
        assert arguments[:2] == ["start", "--block"]
        (resources,) = [each for each in arguments if each.startswith("--resources=")]
        assert json.loads(resources.removeprefix("--resources=")) == {"recado": 2}


def test_its_scripts_are_such_and_no_secret_stands_in_it() -> None:
    for group in groups():
        (container,) = group["template"]["spec"]["containers"]
        done = subprocess.run(["sh", "-n"], input=container["args"][0], text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert [each["name"] for each in container["env"] if each["name"] in {*KEYS, "RECADO_DATABASE_URL"}] == []


def test_page_and_manifest_name_settings_that_there_are() -> None:
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | {"RECADO_CELLS_DATABASE_URL"}
    named = set(re.findall(r"\bRECADO_[A-Z_]+[A-Z]\b", PAGE + MANIFEST.read_text("utf-8")))
    assert named <= known
    shown = set(re.findall(r"^(RECADO_[A-Z_0-9]+)=", PAGE, re.MULTILINE))
    assert {*KEYS, "RECADO_DATABASE_URL", "RECADO_BASE_URL", "RECADO_TRUSTED_PROXIES", "RECADO_DATA_DIR"} <= shown


def test_ray_knows_the_options_that_the_page_gives_it() -> None:
    helped = subprocess.run(
        [Path(sys.executable).with_name("ray"), "start", "--help"], capture_output=True, text=True, check=True
    ).stdout
    given = {
        option
        for line in PAGE.splitlines()
        if line.startswith("ray start")
        for option in re.findall(r"--[a-z-]+", line)
    }
    assert given
    assert {option for option in given if option not in helped} == set()
