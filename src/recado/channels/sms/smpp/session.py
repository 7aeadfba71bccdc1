"""One bind at an SMS centre, kept up: it connects, logs in, and begins again after a pause when it is lost."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

import structlog

from recado.channels.http.connection_pool import default_tls
from recado.channels.sms.smpp.connection import Answer, Label, SmppConnection
from recado.channels.sms.smpp.pdu import Bind, Command, Pdu, body_octets
from recado.channels.sms.smpp.statuses import CommandStatus, bind_failure
from recado.domain.core.clock import Clock
from recado.domain.dispatch.retry import backoff

log = structlog.get_logger()

FIRST_PAUSE: Final = 0.5  # seconds after a failure, doubled at each
LONGEST_PAUSE: Final = 60.0
JITTER: Final = 0.2  # of a pause, either way: many binds that were lost together do not come back together
LEAVE_WITHIN: Final = 2.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SmppLogin:
    """Where an SMS centre is and who we are there. `repr` holds no password."""

    host: str
    port: int
    tls: bool = False
    system_id: str
    password: str = field(repr=False)
    system_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmppTimes:
    """Seconds. `bind`: until a connection is made and bound; `answer`: until a request is answered."""

    bind: float = 5.0
    answer: float = 15.0
    enquire: float = 30.0


class BindRefused(Exception):
    """`code`: of a `Down`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class SmppSession:
    """`bound`: the connection while there is one; `failure`: the code of a `Down` while there is none.

    `changed` hears when either changes.
    """

    def __init__(
        self,
        login: SmppLogin,
        *,
        clock: Clock,
        chance: Random,
        window: int,
        times: SmppTimes,
        changed: Callable[[], None],
        delivered: Callable[[SmppConnection, Pdu], bool],
        late: Callable[[Label, Answer | None], None],
        may_read: Callable[[SmppConnection], bool],
    ) -> None:
        self._login = login
        self._where = {"host": login.host, "port": login.port}
        self._bind = body_octets(
            Bind(system_id=login.system_id, password=login.password, system_type=login.system_type)
        )
        self._clock = clock
        self._chance = chance
        self._window = window
        self._times = times
        self._changed = changed
        self._delivered = delivered
        self._late = late
        self._may_read = may_read
        self._task: asyncio.Task[None] | None = None
        self.bound: SmppConnection | None = None
        self.failure: str | None = None

    async def start(self) -> None:
        """Begin to connect; whoever needs the connection waits for it."""
        if self._login.tls:
            default_tls()  # now, so that no message waits until the certificates are read
        if self._task is None:
            self.failure = None
            self._task = asyncio.get_running_loop().create_task(self._keep(), name="smpp session")

    async def stop(self) -> None:
        """Take leave and end; safe to call twice."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        bound, self.bound, self.failure = self.bound, None, "stopped"
        self._changed()
        if bound is not None and bound.usable:
            leaving = asyncio.ensure_future(bound.unbind())
            await asyncio.wait([leaving], timeout=LEAVE_WITHIN)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)

    async def _keep(self) -> None:
        failures = 0
        said: str | None = None  # the code that the log has of these failures
        while True:
            try:
                connection = await self._connect()
            except Exception as error:  # noqa: BLE001 - whatever it is, another try may do better
                failures += 1
                self._lost(error.code if isinstance(error, BindRefused) else "connect_failed")
                if self.failure != said:
                    said = self.failure
                    log.warning("smpp_bind_failed", **self._where, code=self.failure, error=type(error).__name__)
            else:
                log.info("smpp_bound", **self._where)
                since = self._clock.monotonic()
                self.bound, self.failure, said = connection, None, None
                self._changed()
                connection.keep_alive()
                await asyncio.wait([connection.retired])
                log.warning("smpp_bind_lost", **self._where)
                self.bound = None
                self._lost("connect_failed")
                # One that is lost as soon as it is made is no better than none.
                failures = 1 if self._clock.monotonic() - since >= LONGEST_PAUSE else failures + 1
            pause = backoff(failures, FIRST_PAUSE, LONGEST_PAUSE)
            await self._clock.sleep(pause * (1 + JITTER * (2 * self._chance.random() - 1)))

    def _lost(self, code: str) -> None:
        self.failure = code
        self._changed()

    async def _connect(self) -> SmppConnection:
        """A connection that is bound; raises OSError, or `BindRefused`."""
        login, times = self._login, self._times
        tls = default_tls() if login.tls else None
        made: SmppConnection | None = None
        try:
            async with asyncio.timeout(times.bind):
                _, made = await asyncio.get_running_loop().create_connection(
                    lambda: SmppConnection(
                        self._clock,
                        window=self._window,
                        timeout=times.answer,
                        enquire_every=times.enquire,
                        delivered=self._delivered,
                        late=self._late,
                        may_read=self._may_read,
                    ),
                    login.host,
                    login.port,
                    ssl=tls,
                    server_hostname=login.host if tls else None,
                )
                answer = await made.request(Command.BIND_TRANSCEIVER, self._bind)
                if not isinstance(answer, tuple):
                    raise BindRefused("connect_failed")
                if answer[0] != CommandStatus.OK:
                    raise BindRefused(bind_failure(answer[0]))
                return made
        except BaseException:
            if made is not None:
                made.close()
            raise
