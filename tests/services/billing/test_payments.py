"""What becomes of a payment that is reported: credited once, or left for the administrator (C25.1, C29.5)."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import orjson
import pytest
from tests.captured import capture_logs

from recado.channels.payments.payments import PAYMENTS, PaymentsBridge, payments_of
from recado.domain.billing.top_up import TopUpStatus
from recado.domain.core.ids import IdSource
from recado.domain.messages.changes import Change, DeliveriesQueued
from recado.engine.clock import SystemClock
from recado.http.bodies.body_workers import BodyWorkers
from recado.services.billing.payments import Payments
from recado.services.inbound.callbacks import Callbacks
from recado.storage.access.organizations import create_organization
from recado.storage.billing import ledger, top_ups
from recado.storage.billing.top_ups import TopUp
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.messages import receipts
from recado.storage.messages.receipts import CallbackRow


class Till:
    """One organization in live, with whatever was announced."""

    def __init__(self, db: Database, organization_id: str) -> None:
        clock = SystemClock()
        self.db = db
        self.ids = IdSource(clock, random.Random(1))
        self.organization_id = organization_id
        self.changes: list[Change] = []
        self.payments = Payments(db, clock=clock, ids=self.ids, changed=self.changes.append)

    async def take(self, body: bytes) -> None:
        for payment in payments_of(body):
            await self.payments.report(payment)

    async def asked(self, cents: int = 1_000) -> TopUp:
        return await top_ups.create_pending(
            self.db,
            self.ids,
            organization_id=self.organization_id,
            env="live",
            amount_cents=cents,
            created_by_id="key_1",
            now=datetime.now(UTC),
        )

    async def status(self, top_up: TopUp) -> TopUpStatus:
        found = await top_ups.get(self.db, self.organization_id, "live", top_up.id)
        assert found is not None
        return found.status

    async def balance(self) -> int:
        wallet = await ledger.get(self.db, self.organization_id, "live")
        assert wallet is not None
        assert wallet.balance_coins == await self.db.fetchval(
            "select coalesce(sum(coins), 0)::bigint from ledger where organization_id = $1 and env = 'live'",
            self.organization_id,
        )
        return wallet.balance_coins


class NoReports:
    """Takes in nothing, in the transaction that marks a callback."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def transaction(self) -> AbstractAsyncContextManager[Connection]:
        return self._db.transaction()

    async def take_in(self, executor: Connection, env: str, events: Sequence[object]) -> None:
        assert events == []


def told(top_up: TopUp | str, status: str = "paid", **fields: Any) -> bytes:
    reference = top_up if isinstance(top_up, str) else top_up.payment_reference
    event = {"kind": "payment", "status": status, "reference": reference, "at": "2026-11-20T09:00:00Z", **fields}
    return orjson.dumps({"events": [event]})


@pytest.fixture
async def till(database: Database) -> Till:
    ids = IdSource(SystemClock(), random.Random(2))
    async with database.transaction() as connection:
        made = await create_organization(
            connection, ids, name="Till", now=datetime.now(UTC), random_bytes=random.Random(3).randbytes
        )
    return Till(database, made.organization.id)


async def test_a_payment_credits_its_top_up_once(till: Till) -> None:
    top_up = await till.asked()
    for _ in range(3):
        await till.take(told(top_up, amountCents=1_000))
    assert await till.status(top_up) is TopUpStatus.PAID
    assert await till.balance() == 100_000
    audited = await till.db.fetch("select actor_id, action, details from audit where action = 'wallet.credit'")
    assert [tuple(row) for row in audited] == [
        ("payments", "wallet.credit", {"coins": 100_000, "reference": top_up.payment_reference})
    ]


async def test_a_payment_that_is_told_many_times_at_once_credits_once(till: Till) -> None:
    top_up = await till.asked()
    await asyncio.gather(*(till.take(told(top_up, amountCents=1_000)) for _ in range(8)))
    assert await till.balance() == 100_000


@pytest.mark.parametrize("cents", [0, 999, 1_001])
async def test_another_amount_credits_nothing_and_raises_an_alarm(till: Till, cents: int) -> None:
    top_up = await till.asked()
    with capture_logs() as logs:
        await till.take(told(top_up, amountCents=cents))
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("payment_not_credited", "error")]
    assert (await till.status(top_up), await till.balance()) == (TopUpStatus.PENDING, 0)


async def test_a_canceled_payment_ends_its_top_up(till: Till) -> None:
    top_up = await till.asked()
    await till.take(told(top_up, "canceled"))
    assert await till.status(top_up) is TopUpStatus.CANCELED
    with capture_logs() as logs:
        await till.take(told(top_up, amountCents=1_000))
    assert [entry["event"] for entry in logs] == ["payment_not_credited"]
    assert (await till.status(top_up), await till.balance()) == (TopUpStatus.CANCELED, 0)


async def test_a_cancellation_takes_nothing_back(till: Till) -> None:
    top_up = await till.asked()
    await till.take(told(top_up, amountCents=1_000))
    await till.take(told(top_up, "canceled"))
    assert (await till.status(top_up), await till.balance()) == (TopUpStatus.PAID, 100_000)


async def test_a_payment_after_the_week_is_left_to_the_administrator(till: Till) -> None:
    top_up = await till.asked()
    await top_ups.expire(till.db, datetime.now(UTC) + timedelta(days=7))
    with capture_logs() as logs:
        await till.take(told(top_up, amountCents=1_000))
    assert [(entry["event"], entry["code"]) for entry in logs] == [("payment_not_credited", "INVALID_STATE")]
    assert await till.balance() == 0


async def test_a_payment_of_nobody_raises_an_alarm(till: Till) -> None:
    with capture_logs() as logs:
        await till.take(told("unknown", amountCents=1_000))
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("payment_of_no_top_up", "error")]


async def test_what_can_be_read_of_a_body_counts(till: Till) -> None:
    top_up = await till.asked()
    events = orjson.loads(told(top_up, amountCents=1_000))["events"]
    no_reports: Any = NoReports(till.db)
    callbacks = Callbacks(
        till.db, clock=SystemClock(), providers={(PAYMENTS, "bridge"): PaymentsBridge("s")}, receipts_of=no_reports,
        numbers=Mock(), social_accounts=Mock(), templates=Mock(), flows=Mock(), payments=till.payments,
        apart=BodyWorkers(SystemClock()),
    )  # fmt: skip
    body = orjson.dumps({"events": [{"kind": "status"}, *events]})
    await receipts.store_callbacks(till.db, [CallbackRow(PAYMENTS, "bridge", b"1", body, datetime.now(UTC))])
    await callbacks.work()
    assert await till.db.fetchval("select failure from callbacks where processed_at is not null") == (
        "malformed: events[0].kind"
    )
    assert await till.balance() == 100_000


async def test_a_credit_that_makes_a_wallet_solvent_tells_nobody(till: Till) -> None:
    top_up = await till.asked()
    await till.take(told(top_up, amountCents=1_000))
    assert [change for change in till.changes if isinstance(change, DeliveriesQueued)] == []
