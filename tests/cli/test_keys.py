"""`recado keys` and `recado org` on an installation that their first command makes."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import pytest
from tests.program import free_port

from recado.domain.access.scopes import KEY_SCOPES
from recado.domain.core.tokens import token_env
from recado.engine.clock import SystemClock
from recado.storage.embedded.embedded import EmbeddedPostgres

Recado = Callable[..., "subprocess.CompletedProcess[str]"]


def printed(done: "subprocess.CompletedProcess[str]") -> dict[str, object]:
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def first(recado: Recado, folder: str) -> "subprocess.CompletedProcess[str]":
    return recado("keys", "create", "--data-dir", folder, "--env", "test", "--scopes", "all", "--json")


@pytest.fixture(scope="module")
def installed(first: "subprocess.CompletedProcess[str]", folder: str) -> Iterator[str]:
    """The folder of the first command, with its server in use, as while the service runs."""
    assert first.returncode == 0, first.stderr
    server = EmbeddedPostgres(Path(folder), clock=SystemClock())
    with asyncio.Runner() as runner:
        runner.run(server.start())
        yield folder
        runner.run(server.stop())


def test_the_first_command_makes_the_demonstration_and_tells_its_keys_once(
    recado: Recado, first: "subprocess.CompletedProcess[str]", installed: str
) -> None:
    assert token_env(str(printed(first)["token"])) == "test"
    assert "Made the organization Demonstration" in first.stderr
    assert "svc_" not in first.stderr  # which is no terminal
    assert (Path(installed) / "first-start.txt").read_text().count("svc_") == 2

    again = recado("org", "list", "--data-dir", installed, "--json")

    assert [each["name"] for each in printed(again)["items"]] == ["Demonstration"]  # type: ignore[attr-defined]
    assert again.stderr == ""


def test_a_key_for_programs_is_one_json_object_with_its_token(recado: Recado, installed: str) -> None:
    key = printed(recado("keys", "create", "--data-dir", installed, "--env", "live", "--scopes", "all", "--json"))

    assert token_env(str(key["token"])) == "live"
    assert set(key) == {"token", "id", "organizationId", "env"}


def test_a_key_for_people_is_its_token_alone(recado: Recado, installed: str) -> None:
    done = recado("keys", "create", "--data-dir", installed, "--scopes", "messages:send, messages:read")

    assert token_env(done.stdout.strip()) == "test"


def test_the_list_shows_scopes_and_limits_but_no_token(recado: Recado, installed: str) -> None:
    key = printed(
        recado(
            *("keys", "create", "--data-dir", installed, "--name", "Load", "--scopes", "messages:send"),
            *("--unlimited", "--json"),
        )
    )

    done = recado("keys", "list", "--data-dir", installed, "--env", "test", "--json")

    keys = {each["id"]: each for each in printed(done)["items"]}  # type: ignore[attr-defined]
    assert keys[key["id"]]["name"] == "Load"
    assert keys[key["id"]]["scopes"] == ["messages:send"]
    assert keys[key["id"]]["unlimited"] is True
    assert str(key["token"]) not in done.stdout
    first_key = next(each for each in keys.values() if each["name"] == "First key")
    assert first_key["scopes"] == sorted(KEY_SCOPES)
    assert first_key["unlimited"] is False
    assert {each["env"] for each in keys.values()} == {"test"}


def test_a_key_may_have_limits_of_its_own_above_any_ceiling(recado: Recado, installed: str) -> None:
    limits = ("--limits", "send=90000/500000, read=1/2")
    key = printed(recado("keys", "create", "--data-dir", installed, *limits, "--json"))

    done = recado("keys", "list", "--data-dir", installed, "--env", "test", "--json")

    [found] = [each for each in printed(done)["items"] if each["id"] == key["id"]]  # type: ignore[attr-defined]
    assert found["rateLimits"] == {
        "send": {"perSecond": 90_000.0, "capacity": 500_000}, "read": {"perSecond": 1.0, "capacity": 2},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ("login=1/2", "'login' is no class of requests here (read, write, send, bulk, media, device)"),
        ("read=1", "'read=1' is not of the form class=refill/capacity"),
        ("read=200000/1", "a class takes more than 0.01 and at most 100,000 a second, 1,000,000 at once"),
        ("", "it names no class: write, for example, send=20000/40000"),
    ],
)
def test_limits_that_are_none_are_refused(recado: Recado, folder: str, limits: str, said: str) -> None:
    done = recado("keys", "create", "--data-dir", folder, "--limits", limits)

    assert (done.returncode, done.stderr) == (1, f"recado: --limits: {said}\n")


def test_a_revoked_key_stays_listed_and_cannot_be_revoked_again(recado: Recado, installed: str) -> None:
    key = printed(recado("keys", "create", "--data-dir", installed, "--json"))

    assert printed(recado("keys", "revoke", str(key["id"]), "--data-dir", installed, "--json"))["status"] == "revoked"
    again = recado("keys", "revoke", str(key["id"]), "--data-dir", installed)
    listed = recado("keys", "list", "--data-dir", installed)

    assert again.returncode == 1
    assert again.stderr == "recado: Demonstration has no such key to revoke: 'recado keys list' shows them\n"
    [line] = [line for line in listed.stdout.splitlines() if str(key["id"]) in line]
    assert "revoked" in line


def test_the_audit_tells_what_commands_did_with_a_key_and_which_one_shows_phones(
    recado: Recado, installed: str
) -> None:
    shows = printed(recado("keys", "create", "--data-dir", installed, "--scopes", "pii:full", "--json"))
    masks = printed(recado("keys", "create", "--data-dir", installed, "--scopes", "messages:read", "--json"))
    printed(recado("keys", "revoke", str(masks["id"]), "--data-dir", installed, "--json"))

    assert audited(installed, str(shows["id"])) == ["api_key.create", "pii_full.grant"]
    assert audited(installed, str(masks["id"])) == ["api_key.create", "api_key.revoke"]


def audited(folder: str, target_id: str) -> list[str]:
    """What the audit says was done to a record."""

    async def read() -> list[str]:
        server = EmbeddedPostgres(Path(folder), clock=SystemClock())
        connection = await asyncpg.connect(**await server.start())
        try:
            rows = await connection.fetch("select action from audit where target_id = $1 order by id", target_id)
        finally:
            await connection.close()
            await server.stop()
        return [row["action"] for row in rows]

    return asyncio.run(read())


def test_another_organization_has_keys_and_a_number_of_its_own(recado: Recado, installed: str) -> None:
    made = printed(recado("org", "create", "--name", "Padaria Central", "--data-dir", installed, "--json"))
    keys = made["keys"]
    assert isinstance(keys, dict)
    assert {env: token_env(key["token"]) for env, key in keys.items()} == {"live": "live", "test": "test"}
    assert str(made["numberId"]).startswith("num_")

    by_name = printed(recado("keys", "create", "--org", "Padaria Central", "--data-dir", installed, "--json"))
    by_id = printed(recado("keys", "create", "--org", str(made["id"]), "--data-dir", installed, "--json"))
    unnamed = printed(recado("keys", "create", "--data-dir", installed, "--json"))

    assert by_name["organizationId"] == by_id["organizationId"] == made["id"] != unnamed["organizationId"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "status", "line"),
    [
        (
            ("keys", "create", "--scopes", "messages:sned"),
            1,
            "recado: no key may hold messages:sned: did you mean messages:send?",
        ),
        (("keys", "create", "--scopes", "nothing"), 1, "recado: no key may hold nothing: choose among "),
        (("keys", "create", "--scopes", "accounts:read"), 1, "recado: no key may hold accounts:read: choose among "),
        (("keys", "create", "--scopes", ","), 1, "recado: --scopes names no scope: give some"),
        (("keys", "create", "--name", " "), 1, "recado: --name must have 1 to 80 characters"),
        (("keys", "create", "--org", "Nobody"), 1, "recado: no organization is called 'Nobody': 'recado org list'"),
        (("keys", "create", "--env", "prod"), 2, "recado: Invalid value for '--env'"),
        (("keys", "revoke"), 2, "recado: Missing argument"),
        (("org", "create", "--name", ""), 1, "recado: --name must have 1 to 120 characters"),
    ],
)
def test_a_mistake_is_one_line(
    recado: Recado, installed: str, arguments: tuple[str, ...], status: int, line: str
) -> None:
    done = recado(*arguments, "--data-dir", installed)

    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


def test_the_doctor_finds_a_whole_installation_healthy(recado: Recado, installed: str) -> None:
    report = printed(recado("doctor", "--data-dir", installed, "--json", LISTEN=f"127.0.0.1:{free_port()}"))

    assert report["healthy"] is True
    checks = report["checks"]
    assert isinstance(checks, list)
    looked_at = {check["subject"] for check in checks}
    assert looked_at >= {"settings", "keys", "address", "disk", "limits", "database", "providers"}
    # What other runs left on this machine is told, too; PostgreSQL may run still, or not any more.
    # So is a limit of open files that leaves fewer calls than usual.
    wrong = [check["text"] for check in checks if check["verdict"] != "ok" and check["subject"] != "limits"]
    assert [text for text in wrong if " was the database of " not in text and "does not run" not in text] == []


def test_nothing_is_left_to_migrate_after_a_first_start(recado: Recado, installed: str) -> None:
    assert printed(recado("migrate", "--data-dir", installed, "--json")) == {"applied": []}
