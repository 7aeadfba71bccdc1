"""What docs/accounts.md shows is so."""

import re
from pathlib import Path

import orjson
import typer.main

from recado.cli.program import app
from recado.domain.access.account import Role
from recado.http.routes.access.account_models import InviteAcceptance, SessionOut, SignIn
from recado.http.routes.contacts.document_reveal import RevealRequest

PAGE = (Path(__file__).parents[2] / "docs" / "accounts.md").read_text("utf-8")


def test_the_session_of_the_page_is_one() -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert SessionOut.model_validate_json(shown).account.role == "owner"
    assert set(orjson.loads(shown)) == {info.alias for info in SessionOut.model_fields.values()}


def test_the_bodies_of_the_page_are_taken() -> None:
    accept, sign_in, reveal = re.findall(r"-d '(\{.*?\})'", PAGE)
    InviteAcceptance.model_validate_json(accept)
    SignIn.model_validate_json(sign_in)
    assert RevealRequest.model_validate_json(reveal).campos == ["cpf"]


def test_the_commands_of_the_page_exist_with_their_options() -> None:
    commands = re.findall(r"^recado (\w+) (\w+) (.*)$", PAGE, re.MULTILINE)
    assert len(commands) == 2
    groups = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for group, name, rest in commands:
        options = {option for parameter in groups[group].commands[name].params for option in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= options


def test_every_role_is_told() -> None:
    told = re.findall(r"`(\w+)`", PAGE.partition("## Who may do what")[2].partition("`extraScopes`")[0])
    assert told == [role.value for role in Role]
