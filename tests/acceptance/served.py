"""The whole application in this process, on a loop and a port of its own: what `recado serve` runs, within reach."""

import asyncio
import base64
import json
import shutil
import threading
import urllib.request
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import structlog
from pydantic import SecretStr
from tests.clusters import give_cluster
from tests.loop_errors import LoopErrors
from tests.program import free_port

from recado.app import Application
from recado.config.limits import DEFAULT_LIMITS, RequestLimit
from recado.config.settings import Settings
from recado.engine.clock import SystemClock
from recado.http.api.route import Route
from recado.http.routes.ops import stream
from recado.storage.access.organizations import NewOrganization
from recado.storage.embedded.embedded import EmbeddedPostgres
from recado.storage.embedded.service_folder import service_folder

T = TypeVar("T")

ADMIN_TOKEN = "the administrator of these tests"
BRIDGE_SECRET = "what the bridge signs with"
PAYMENTS_SECRET = "what the bank signs with"
INDEX_KEY = b"with what tokens are signed here"
_PATIENCE = 120.0  # seconds
_PLENTY = RequestLimit(100_000.0, 1_000_000)


class Served:
    """A running application. `database`: the connect arguments of its embedded PostgreSQL.

    The stream of operators ends at once, or whoever reads every answer to its end would wait for that. At its own end
    it fails when anything failed in its loop that nobody awaited.
    """

    def __init__(self, folder: Path, **changed: Any) -> None:
        """`changed`: settings that are other than here."""
        self._data_dir = folder / "data"
        usual: dict[str, Any] = {
            "_env_file": None,
            "database_url": None,
            "base_url": None,
            "data_dir": self._data_dir,
            "listen": f"127.0.0.1:{free_port()}",
            "admin_token": SecretStr(ADMIN_TOKEN),
            "index_key": base64.b64encode(INDEX_KEY).decode(),
            "sandbox_time_scale": 0,
            # Live has a provider that sends callbacks, and that nobody answers for.
            "adapter_chatapp": "bridge",
            "bridge_chatapp_url": f"http://127.0.0.1:{free_port()}",
            "bridge_chatapp_token": SecretStr("a token"),
            "bridge_chatapp_secret": SecretStr(BRIDGE_SECRET),
            "adapter_payments": "bridge",
            "bridge_payments_secret": SecretStr(PAYMENTS_SECRET),
            # Webhooks lead to this machine.
            "ssrf_allow_cidrs": "127.0.0.0/8",
            "request_limits": dict.fromkeys(DEFAULT_LIMITS, _PLENTY),
        }
        self._application = Application(Settings(**usual | changed))
        self._postgres = EmbeddedPostgres(self._data_dir, clock=SystemClock())
        self._loop: asyncio.AbstractEventLoop
        self._end_of_loop: asyncio.Event
        self._looping = threading.Event()
        self._errors = LoopErrors()
        self._thread = threading.Thread(target=asyncio.run, args=[self._loop_until_end()], daemon=True)
        self.database: dict[str, Any] = {}

    def __enter__(self) -> Self:
        give_cluster(self._data_dir)
        stream.LONGEST = 0.0
        # Not to the stream of the tests: pytest changes that between two of them, while the thread may write to it.
        self._data_dir.parent.mkdir(parents=True, exist_ok=True)
        self._logged = self._data_dir.with_name("log").open("w")
        self._logging = structlog.get_config()
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(self._logged))
        self._thread.start()
        self._looping.wait(_PATIENCE)
        try:
            self.run(self._application.start())
            self.database = self.run(self._postgres.start())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        if error is None:
            self._errors.check()

    @property
    def url(self) -> str:
        return self._application.address

    @property
    def routes(self) -> tuple[Route, ...]:
        """The table of everything that is served."""
        return self._application.routes

    @property
    def first(self) -> NewOrganization:
        """The organization that the first start made."""
        assert self._application.made is not None
        return self._application.made

    def document(self) -> Any:
        """Its OpenAPI document, fetched as anybody may."""
        with urllib.request.urlopen(f"{self.url}/v2/openapi.json", timeout=30) as answer:
            return json.loads(answer.read())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, done on the application's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    async def _loop_until_end(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._errors.watch(self._loop)
        self._end_of_loop = asyncio.Event()
        self._looping.set()
        await self._end_of_loop.wait()

    def _end(self) -> None:
        try:
            self.run(self._postgres.stop())
            self.run(self._application.stop())
        finally:
            self._loop.call_soon_threadsafe(self._end_of_loop.set)
            self._thread.join(_PATIENCE)
            structlog.configure(**self._logging)
            self._logged.close()
            folder = service_folder(self._data_dir)
            if folder is not None:
                shutil.rmtree(folder)
