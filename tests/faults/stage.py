"""The stage of the fault rounds: a service behind the proxy of its database, and a bridge that misbehaves."""

import asyncio
import base64
import os
import secrets
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.crash.stage import Stage
from tests.faults.providers import MisbehavingBridge
from tests.faults.proxy import FaultProxy
from tests.program import free_port

from recado.simulator.record import Request


class FaultStage(Stage):
    """`server`: how to connect to the database past `proxy`. The bridge is an async context of its user's."""

    def __init__(self, folder: Path, *, seed: int, server: Mapping[str, Any], proxy: FaultProxy) -> None:
        token, secret = given = [secrets.token_urlsafe(24) for _ in range(2)]
        provider = free_port()
        adapter = {
            "ADAPTER_CHATAPP": "bridge",
            "BRIDGE_CHATAPP_URL": f"http://127.0.0.1:{provider}",
            "BRIDGE_CHATAPP_TOKEN": token,
            "BRIDGE_CHATAPP_SECRET": secret,
        }
        super().__init__(folder, seed=seed, **adapter, **behind(proxy, server))
        self.secrets += given
        self.bridge = MisbehavingBridge(provider, secret=secret)
        self._server = server

    async def start(self) -> None:
        await asyncio.to_thread(self.service.command, "org", "create", "--name", "Padaria Central", "--json")
        await super().start()

    @property
    def database(self) -> Mapping[str, Any]:
        return self._server

    def postgres_log(self) -> None:
        return None

    def received(self) -> int:
        return len(self.bridge.requests())

    def requests(self) -> list[Request]:
        return self.bridge.requests()

    async def wipe(self) -> None:
        for program in (*self.others, self.service):
            program.end(signal.SIGKILL)


def behind(proxy: FaultProxy, server: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a service whose way to its database is the proxy."""

    def key() -> str:
        return base64.b64encode(os.urandom(32)).decode()

    url = f"postgresql://recado@127.0.0.1:{proxy.port}/{server['database']}?sslmode=disable"
    return {"DATABASE_URL": url, "ENCRYPTION_KEYS": f"k1:{key()}", "INDEX_KEY": key(), "CURSOR_KEY": key()}
