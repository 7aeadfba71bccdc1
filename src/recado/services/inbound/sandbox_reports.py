"""The sandbox's reports and replies, which are rows with a due time, so that a restart forgets none (C29.4)."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta

from recado.channels.core.event_json import event_from_json
from recado.channels.core.events import Inbound, Status
from recado.channels.core.refusals import codes_of
from recado.domain.channels.source import SANDBOX, Source
from recado.domain.core.clock import Clock, TimerHandle
from recado.domain.core.errors import Unavailable
from recado.engine.periodic import Periodic
from recado.services.inbound.account_owners import AccountOwner
from recado.services.inbound.receipts import PARKED_FOR, OwnedReply, OwnedReport, Receipts
from recado.storage.core.connections.postgres import Database
from recado.storage.messages import receipts

OPENED = "opened"  # of a link (`LinkOpened`)
BLOCK = 1_000
NET = 1.0  # seconds


class SandboxReports:
    """Applies each report at its moment: a timer for the next one known, and a look every second."""

    def __init__(
        self, db: Database, *, clock: Clock, receipts_of: Receipts, opens: Callable[[str], Awaitable[object]]
    ) -> None:
        """`opens`: follows the link of a code, as a person does."""
        self._db = db
        self._clock = clock
        self._receipts = receipts_of
        self._opens = opens
        self._worker = Periodic("sandbox reports", NET, self.work, clock, at_once=True)
        self._is_due = False  # its moment has come
        self._timer: TimerHandle | None = None
        self._timer_at = datetime.max.replace(tzinfo=clock.now().tzinfo)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._worker.stop()

    def expect(self, due_at: datetime) -> None:
        """A report was stored that is due then."""
        if due_at >= self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = due_at
        wait = max(0.0, (due_at - self._clock.now()) / timedelta(seconds=1))
        self._timer = self._clock.call_at(self._clock.monotonic() + wait, self._due)

    def _due(self) -> None:
        self._timer, self._timer_at = None, datetime.max.replace(tzinfo=self._timer_at.tzinfo)
        self._is_due = True
        self._worker.hint()

    async def work(self) -> None:
        """Apply what is due, and note when the next one will be; where nothing is known to be due, only that."""
        if not self._is_due:
            await self._look()
            return
        self._is_due = False
        while True:
            async with self._receipts.transaction() as connection:
                now = self._clock.now()
                rows = sorted(
                    await receipts.take_sandbox(connection, now, BLOCK), key=lambda row: (row["due_at"], row["step"])
                )
                replies: list[OwnedReply] = []
                reports: list[OwnedReport] = []
                opened: list[str] = []
                for row in rows:
                    source = Source(row["channel"], SANDBOX, row["env"])
                    if row["event"]["kind"] == OPENED:
                        opened.append(row["event"]["code"])
                        continue
                    match event_from_json(row["event"], codes_of(row["channel"])):
                        case Inbound() as reply:
                            owner = AccountOwner(row["organization_id"], row["sender_id"])
                            replies.append(OwnedReply(source, owner, reply))
                        case Status() as status:
                            message = (row["organization_id"], row["sender_id"], row["message_id"])
                            reports.append(OwnedReport(source, *message, status, now + PARKED_FOR))
                await self._receipts.take_in_of_each(connection, {}, reports, replies)
            for code in opened:
                with suppress(Unavailable):  # nobody is told of it, as of a person who gives up
                    await self._opens(code)
            if len(rows) < BLOCK:
                break
        await self._look()

    async def _look(self) -> None:
        due_at = await receipts.next_sandbox(self._db)
        if due_at is not None:
            self.expect(due_at)
