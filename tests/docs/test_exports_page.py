"""What docs/exports.md shows is so."""

import re
import shlex
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
import typer.main

from recado.cli.program import app
from recado.domain.channels.exported import COLUMNS
from recado.domain.core.errors import CODES
from recado.http.bodies.parsing import QueryParser
from recado.http.routes.messages.export_models import ExportQuery

PAGE = (Path(__file__).parents[2] / "docs" / "exports.md").read_text("utf-8")
COMMANDS = [line for line in PAGE.splitlines() if line.startswith("recado export ")]


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_of_the_page_can_be_pasted(line: str) -> None:
    program = cast("Any", typer.main.get_command(app))
    _, name, *arguments = shlex.split(line)
    context = program.commands[name].make_context(name, arguments)
    assert context.params["channel"] in line
    assert context.params["start"] in line


def test_there_are_commands_on_the_page() -> None:
    assert len(COMMANDS) >= 2


def test_the_page_can_be_asked_for_and_is_shown_as_it_is() -> None:
    (query,) = re.findall(r"/v2/exports/chatapp\?(\S+)\"", PAGE)
    asked = cast("ExportQuery", QueryParser(ExportQuery, 400).parse(query, []))
    assert (asked.limit, asked.cursor) == (1000, None)
    (shown,) = [orjson.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    for item in shown["items"]:
        assert item.keys() <= set(COLUMNS)
    assert shown.keys() == {"items", "nextCursor"}


def test_the_codes_of_the_page_are_those_in_force() -> None:
    words = set(re.findall(r"`([^`\n]+)`", PAGE))
    assert {word for word in words if re.fullmatch(r"[A-Z]+(_[A-Z]+)+", word)} <= set(CODES)
