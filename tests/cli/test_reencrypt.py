"""`recado reencrypt` (C30.1): an old key can go when the command says so, and not before."""

import asyncio
import base64
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from recado.engine.clock import SystemClock
from recado.storage.core.crypto import KeyRing
from recado.storage.embedded.embedded import EmbeddedPostgres

Recado = Callable[..., "subprocess.CompletedProcess[str]"]
OLD, NEW = (f"{kid}:{base64.b64encode(kid.encode() * 16).decode()}" for kid in ("k1", "k2"))


class Installed:
    """An installation whose database is in use, as while the service runs."""

    def __init__(self, recado: Recado, folder: str, server: dict[str, Any]) -> None:
        self._recado = recado
        self._folder = folder
        self._server = server

    def reencrypt(self, keys: str, *options: str) -> "subprocess.CompletedProcess[str]":
        return self._recado("reencrypt", "--data-dir", self._folder, *options, ENCRYPTION_KEYS=keys)

    def query(self, query: str, *arguments: Any) -> Any:
        async def fetch() -> Any:
            connection = await asyncpg.connect(**self._server)
            try:
                return await connection.fetchrow(query, *arguments)
            finally:
                await connection.close()

        return asyncio.run(fetch())

    def put(self, keys: str, text: str) -> None:
        """Give the first number an access token, encrypted with these keys."""
        organization_id, number_id = self.number
        cipher = KeyRing.parse(keys).encrypt(
            text, organization_id=organization_id, record_id=number_id, field="access_token"
        )
        self.query("update numbers set access_token_cipher = $2 where id = $1 returning id", number_id, cipher)

    def read(self, keys: str) -> str:
        organization_id, number_id = self.number
        (cipher,) = self.query("select access_token_cipher from numbers where id = $1", number_id)
        return KeyRing.parse(keys).decrypt(
            cipher, organization_id=organization_id, record_id=number_id, field="access_token"
        )

    @property
    def number(self) -> tuple[str, str]:
        organization_id, number_id = self.query("select organization_id, id from numbers order by id limit 1")
        return organization_id, number_id


@pytest.fixture(scope="module")
def installed(recado: Recado, folder: str) -> Iterator[Installed]:
    made = recado("keys", "create", "--data-dir", folder, ENCRYPTION_KEYS=OLD)
    assert made.returncode == 0, made.stderr
    postgres = EmbeddedPostgres(Path(folder), clock=SystemClock())
    with asyncio.Runner() as runner:
        server = runner.run(postgres.start())
        yield Installed(recado, folder, server)
        runner.run(postgres.stop())


def test_values_move_to_the_new_key_and_then_nothing_is_left(installed: Installed) -> None:
    installed.put(OLD, "the number's token")

    first = installed.reencrypt(f"{NEW},{OLD}", "--json")
    second = installed.reencrypt(f"{NEW},{OLD}")

    assert (first.returncode, json.loads(first.stdout)) == (0, {"written": 2, "left": 0, "damaged": 0}), first.stderr
    assert (second.returncode, second.stdout) == (0, "0 written again, 0 left\n")
    assert installed.read(NEW) == "the number's token"


def test_a_value_that_no_key_opens_is_told_and_stays(installed: Installed) -> None:
    installed.put(OLD, "another token")

    done = installed.reencrypt(NEW, "--json")

    assert (done.returncode, json.loads(done.stdout)) == (1, {"written": 0, "left": 1, "damaged": 1})
    assert done.stderr.startswith("recado: 1 value cannot be decrypted: restore the key or a backup")
    assert done.stderr.count("\n") == 1
    assert installed.read(OLD) == "another token"
    entry = installed.query("select target_id, actor_type, details::text from audit where action = 'record.tampered'")
    assert tuple(entry) == (installed.number[1], "system", '{"field": "access_token"}')
