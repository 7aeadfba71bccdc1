"""Dockerfile and compose file, as their linters judge them; where there is no Docker, what they do is tried by hand."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from recado.cli.cells.databases import MAP
from recado.config.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "container"
DOCKERFILE, COMPOSE = FOLDER / "Dockerfile", FOLDER / "compose.yaml"
PROGRAMS = Path(sys.executable).parent
IMAGE = re.compile(r"[a-z0-9-]+:[a-z0-9.-]+")  # a name and a tag, and no registry's host


def passes(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def composed() -> Any:
    return yaml.safe_load(COMPOSE.read_text("utf-8"))


def copied() -> list[str]:
    """What the image takes from the repository."""
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE.read_text("utf-8"), re.MULTILINE)
    return [name for line in lines for name in line.split()]


def test_hadolint_takes_the_dockerfile() -> None:
    passes(PROGRAMS / "hadolint", DOCKERFILE)


def test_the_compose_file_is_one_by_its_schema() -> None:
    passes(PROGRAMS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE)


def test_images_are_named_with_a_tag_and_without_a_host() -> None:
    based = re.findall(r"^FROM (\S+)", DOCKERFILE.read_text("utf-8"), re.MULTILINE)
    ran = [service["image"] for service in composed()["services"].values()]
    assert len(based) == 2
    assert [image for image in (*based, *ran) if not IMAGE.fullmatch(image)] == []


def test_services_keep_what_must_last_on_volumes_and_wait_for_one_another() -> None:
    content = composed()
    services = content["services"]
    mounted = {each.partition(":")[0] for service in services.values() for each in service["volumes"]}
    assert mounted == set(content["volumes"])
    waited = {name for service in services.values() for name in service.get("depends_on", {})}
    assert waited == {"migrate", "database"}
    assert services["recado"]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert "healthcheck" in services["database"]


@pytest.mark.parametrize(
    "file",
    [
        "container/Dockerfile", "container/compose.yaml", "recado.env.example", "recado-entry.env.example",
        "systemd/recado.service", "systemd/recado-entry.service",
    ],
)  # fmt: skip
def test_what_is_set_is_a_setting(file: str) -> None:
    found = set(re.findall(rf"\b{PREFIX}([A-Z0-9_]+)\b", (ROOT / "deploy" / file).read_text("utf-8")))
    assert found
    assert found <= {name.upper() for name in Settings.model_fields} | {MAP.removeprefix(PREFIX)}


def test_nothing_is_kept_from_the_image_that_it_is_made_of() -> None:
    ignored = (FOLDER / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert [line[1:] for line in ignored if line.startswith("!")] == copied()


@pytest.mark.long
def test_what_the_image_copies_makes_the_whole_program(tmp_path: Path) -> None:
    """The wheel that pip makes of it, as the Dockerfile has it do, holds each file of the package."""
    source, made = tmp_path / "build", tmp_path / "made"
    source.mkdir()
    subprocess.run(["cp", "--archive", *copied(), source], cwd=ROOT, check=True)
    passes(PROGRAMS / "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", made, source)
    (wheel,) = made.glob("recado-*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("recado/")}
    tracked = subprocess.run(
        ["git", "ls-files", "src/recado"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(tracked) > 500
    assert {name.removeprefix("src/") for name in tracked} - packed == set()
