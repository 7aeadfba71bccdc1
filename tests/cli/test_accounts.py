"""`recado account` and owners of organizations from the command line (C24.2, C35)."""

import asyncio
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from recado.domain.core.tokens import token_hash
from recado.engine.clock import SystemClock
from recado.storage.embedded.embedded import EmbeddedPostgres

Recado = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def server(recado: Recado, folder: str) -> Iterator[dict[str, Any]]:
    """The connect arguments of an installation's database, which is in use, as while the service runs."""
    made = recado("keys", "create", "--data-dir", folder, "--json")
    assert made.returncode == 0, made.stderr
    postgres = EmbeddedPostgres(Path(folder), clock=SystemClock())
    with asyncio.Runner() as runner:
        yield runner.run(postgres.start())
        runner.run(postgres.stop())


def rows(server: dict[str, Any], query: str, *arguments: Any) -> list[tuple[Any, ...]]:
    async def fetch() -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(**server)
        try:
            return [tuple(row) for row in await connection.fetch(query, *arguments)]
        finally:
            await connection.close()

    return asyncio.run(fetch())


def test_a_person_is_invited_and_the_audit_knows_the_command(
    recado: Recado, folder: str, server: dict[str, Any]
) -> None:
    done = recado(
        "account", "create", "--email", "Ana@example.com", "--name", "Ana", "--role", "operator", "--json",
        "--data-dir", folder,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert rows(
        server,
        "select a.email, a.role, a.status from account_invites i join accounts a on a.id = i.account_id "
        "where i.token_hash = $1",
        token_hash(made["inviteToken"]),
    ) == [("Ana@example.com", "operator", "invited")]
    entries = rows(server, "select action, actor_type from audit where target_id = $1 order by id", made["id"])
    assert entries == [("account.create", "system"), ("pii_full.grant", "system")]
    again = recado("account", "create", "--email", "ana@EXAMPLE.com", "--data-dir", folder)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "recado: Another account of this installation has this e-mail address.\n"


def test_people_read_how_they_go_on(recado: Recado, folder: str, server: dict[str, Any]) -> None:
    done = recado("account", "create", "--email", "rui@example.com", "--data-dir", folder)

    account_id, line, _, token = done.stdout.splitlines()
    assert re.fullmatch(r"acc_\w{21}", account_id)
    assert line.startswith("rui@example.com is invited for 72 hours")
    assert re.fullmatch(r"  svci_\w{43}", token)
    assert rows(server, "select role from accounts where id = $1", account_id) == [("owner",)]


def test_an_organization_is_made_with_its_owner(recado: Recado, folder: str, server: dict[str, Any]) -> None:
    done = recado(
        "org", "create", "--name", "Padaria", "--owner-email", "eva@example.com", "--json", "--data-dir", folder
    )

    made = json.loads(done.stdout)
    assert rows(server, "select organization_id, role, status from accounts where id = $1", made["accountId"]) == [
        (made["id"], "owner", "invited")
    ]
    taken = recado("org", "create", "--name", "Other", "--owner-email", "eva@example.com", "--data-dir", folder)
    assert (taken.returncode, taken.stdout) == (1, "")
    assert rows(server, "select count(*) from organizations where name = 'Other'") == [(0,)]


@pytest.mark.parametrize(
    "arguments",
    [
        ("account", "create", "--email", "nobody"),
        ("account", "create", "--email", "a b@example.com"),
        ("account", "create", "--email", "a@example.com", "--name", " "),
        ("org", "create", "--name", "X", "--owner-email", "nobody"),
    ],
)
def test_what_is_no_address_or_name_is_refused_in_one_line(recado: Recado, arguments: tuple[str, ...]) -> None:
    done = recado(*arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"recado: --(email|name|owner-email) must .*\n", done.stderr)
