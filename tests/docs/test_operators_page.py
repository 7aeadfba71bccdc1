"""What docs/operators.md and docs/sandbox.md show of commands is so."""

import re
import shlex
from pathlib import Path
from typing import Any, cast

import pytest
import typer.main

from recado.cli.program import app
from recado.cli.top.live_numbers import ORDERS
from recado.cli.top.top_view import HELP

DOCS = Path(__file__).parents[2] / "docs"
OPERATORS = (DOCS / "operators.md").read_text("utf-8")
SHOWN = OPERATORS + (DOCS / "sandbox.md").read_text("utf-8").replace("\\\n", "")
COMMANDS = [line.partition(" | ")[0] for line in SHOWN.splitlines() if re.match("recado (top|loadtest|keys) ", line)]


def test_the_commands_are_found() -> None:
    assert {line.split()[1] for line in COMMANDS} == {"top", "loadtest", "keys"}


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_of_the_pages_can_be_pasted(line: str) -> None:
    program, (_, name, *arguments) = cast("Any", typer.main.get_command(app)), shlex.split(line)
    command = program.commands[name]
    if hasattr(command, "commands"):
        name, *arguments = arguments
        command = command.commands[name]
    assert command.make_context(name, arguments).params


def test_the_keys_of_the_terminal_are_those_of_its_help() -> None:
    section = OPERATORS.partition("## In a terminal")[2].partition("\n## ")[0]
    table = "".join(line.split("|")[1] for line in section.splitlines() if line.startswith("| "))
    helped = {key for keys, _ in HELP for key in keys.split() if key.isascii()} | {"h"}
    assert set(re.findall(r"`(.)`", table)) == helped
    assert f"{', '.join(order.name for order in ORDERS)};" in section
