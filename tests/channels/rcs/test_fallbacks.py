"""The SMS in place of an RCS message: taken back first, sent once, and paid for as what carried it (C17.2, C25.2)."""

import random
from datetime import timedelta
from typing import Any
from unittest.mock import AsyncMock, Mock

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.purse import ENV, Purse
from tests.services.effects.test_partial_holds import check

from recado.channels.core.errors import ProviderError
from recado.channels.core.events import Status
from recado.channels.core.provider import Account
from recado.domain.channels.exported import EXPORTED
from recado.domain.channels.rcs import POLICY, RCS
from recado.domain.channels.source import Source
from recado.domain.core.ids import IdSource
from recado.domain.messages.message import Cause, FailureCode
from recado.domain.senders.sender import SenderKey, route_sender
from recado.engine.clock import SystemClock
from recado.services.contacts.consents import Gathered
from recado.services.dispatch.rcs_fallbacks import ASK_FOR, RcsFallbacks, Revoker
from recado.services.inbound.receipts import Receipts
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import settlements
from recado.storage.dispatch.settlements import Capture, Departed, Failed, LookUps, Onward
from recado.storage.messages import message_deadlines, message_reads, receipts
from recado.storage.messages.message_reads import Message, MessageFilter
from recado.storage.messages.messages import STORED, NewMessage
from recado.storage.messages.receipts import ReportRow

CLOCK = SystemClock()
IDS = IdSource(CLOCK, random.Random(17))
EASY, BY_SMS = route_sender(RCS, ENV, "easy_rcs"), route_sender(RCS, ENV, "sms")
GATEWAY = Account(sender_id="bridge", organization_id="", env=ENV, provider_id="bridge", owner="bridge")
EPOCH = 1
MILLISECOND = timedelta(milliseconds=1)
SMS_BRIDGE = Source("sms", "bridge", ENV)


class Provider:
    """Takes messages back, does not, or does not say."""

    def __init__(self) -> None:
        self.answer: bool | ProviderError = True
        self.asked: list[tuple[str, str]] = []

    async def revoke(self, message_id: str, provider_message_id: str, to: str, account: Account) -> bool:
        self.asked.append((message_id, provider_message_id))
        if isinstance(self.answer, ProviderError):
            raise self.answer
        return self.answer


class RcsPurse(Purse):
    """The way of RCS messages, each step with what follows of it."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, CLOCK, IDS)
        self.provider = Provider()
        self.told: list[SenderKey] = []
        self.fallbacks = RcsFallbacks(
            database,
            clock=CLOCK,
            consequences=self.consequences,
            tell=lambda key, _: self.told.append(key),
            revokers={ENV: Revoker(self.provider, GATEWAY)},
        )

    async def sent(self, own: int, sms: int | None) -> NewMessage | None:
        """A message with these prices; None: no coins for it. `sms` None: it has no fallback."""
        details: dict[str, Any] = {
            "route": "easy_rcs",
            "deliveredVia": "rcs",
            "price": {"coins": own, "kind": "rcs_text"},
        }
        payload: dict[str, Any] = {"text": {"body": "Hello"}}
        if sms is not None:
            payload["fallback"] = {"text": "Hello"}
            details["fallback"] = {
                "route": "premium", "encoding": "GSM-7", "length": 5, "segments": 2, "afterSeconds": 30,
                "price": {"coins": sms, "kind": "sms_premium"},
            }  # fmt: skip
        new = self.message(
            max(own, sms or 0), channel=RCS, sender_id=EASY, type="text", price_kind="rcs_text", campaign_id="spring",
            payload=orjson.dumps(payload).decode(), details=orjson.dumps(details).decode(),
        )  # fmt: skip
        return new if await self.store(new) == [STORED] else None

    async def read(self, message: NewMessage) -> Message:
        found = await message_reads.get(self.database, self.organization_id, ENV, message.id, [RCS])
        assert found is not None
        return found

    async def claim(self, message: NewMessage) -> None:
        await self.database.execute(
            "update dispatch set claimed_epoch = $2, claimed_at = $3 where id = $1 and claimed_epoch is null",
            message.id, EPOCH, CLOCK.now(),
        )  # fmt: skip

    async def leave(self, message: NewMessage, look_ups: LookUps | None = None) -> None:
        """Its provider accepts it, RCS or SMS."""
        now, read = CLOCK.now(), await self.read(message)
        details = read.details or {}
        assert POLICY.taken is not None
        taken = POLICY.taken(details)
        assert taken is not None
        row = Departed(
            self.organization_id, ENV, RCS, message.id, read.sender_id or "", f"p-{message.id}", now, None,
            look_ups=look_ups, settled_at=now, deadlines=POLICY.deadlines(details, now),
            capture=Capture(taken.coins, taken.units, taken.price_kind), adjusted=taken.adjusted,
        )  # fmt: skip
        await self.recording.record([row])

    async def refuse(self, message: NewMessage, code: str = "not_rcs_capable") -> None:
        """Its provider refuses it."""
        read = await self.read(message)
        assert POLICY.onward is not None
        way = POLICY.onward(read.details or {}, code)
        if way is None:
            await self.fail(message, FailureCode.PROVIDER_ERROR, queued=False)
            return
        claimed_at = await self.database.fetchval("select claimed_at from dispatch where id = $1", message.id)
        details = orjson.dumps(way.details).decode()
        key = (self.organization_id, ENV, RCS, message.id)
        row = Onward(*key, claimed_at, route_sender(RCS, ENV, way.route), details, way.units, CLOCK.now())
        await settlements.onward(self.database.hot, [row], EPOCH)

    async def tells(self, message: NewMessage, report: str, carrier: str) -> None:
        """Who carries it, or carried it, reports."""
        cause = Cause("carrier_rejected", "says the provider") if report == "failed" else None
        row = ReportRow(
            self.organization_id, ENV, RCS, message.id, report, CLOCK.now(), cause, None,
            carrier=carrier if report in ("sent", "failed") else None,
        )  # fmt: skip
        async with self.database.hot.transaction() as connection:
            found = await receipts.apply(connection, [row], CLOCK.now())
            committed = await self.consequences.write(connection, [each for moves in found.values() for each in moves])
        committed()

    async def due(self, answer: bool | ProviderError = True) -> None:
        """Nothing was delivered in time."""
        self.provider.answer = answer
        await self.database.execute("update message_deadlines set due_at = $1", CLOCK.now())
        await self.fallbacks.work()

    async def costs(self, message: NewMessage) -> list[tuple[str, int]]:
        rows = await self.database.fetch(
            "select kind, coins from ledger where message_id = $1 order by position", message.id
        )
        return [(row["kind"], -row["coins"]) for row in rows]


@pytest.fixture
async def purse(database: Database) -> RcsPurse:
    made = RcsPurse(database)
    await made.open()
    await made.credit(1_000_000)
    return made


async def gone(purse: RcsPurse, own: int = 1_100, sms: int | None = 2_000) -> NewMessage:
    """It has left by RCS."""
    message = await purse.sent(own, sms)
    assert message is not None
    await purse.claim(message)
    await purse.leave(message)
    return message


async def test_what_is_not_delivered_in_time_is_taken_back_and_queued_for_its_sms(purse: RcsPurse) -> None:
    message = await gone(purse)
    assert await purse.standing() == (1_000_000 - 1_100, 900)
    await purse.due()
    read = await purse.read(message)
    assert purse.provider.asked == [(message.id, f"p-{message.id}")]
    assert (read.status, read.sender_id, read.units, (read.details or {})["deliveredVia"]) == (
        "queued",
        BY_SMS,
        2,
        "sms",
    )
    assert read.sent_at is not None
    assert purse.told == [SenderKey(purse.organization_id, ENV, RCS, BY_SMS)]
    assert await purse.standing() == (1_000_000 - 1_100, 900)
    await purse.due()
    assert len(purse.provider.asked) == 1
    await purse.claim(message)
    await purse.leave(message)
    assert (await purse.read(message)).status == "sent"
    assert await purse.costs(message) == [("charge", 1_100), ("adjustment", 900)]
    assert await purse.standing() == (1_000_000 - 2_000, 0)
    await check(purse)


@pytest.mark.parametrize("campaign_id", [None, "spring"])
async def test_until_its_sms_has_left_it_is_listed_and_exported_as_sent(
    purse: RcsPurse, campaign_id: str | None
) -> None:
    async def listed(status: str) -> list[str]:
        wanted = MessageFilter(
            organization_id=purse.organization_id, env=ENV, channels=[RCS], status=status, as_shown=False,
            stays_sent=True, campaign_id=campaign_id,
        )  # fmt: skip
        page = await message_reads.list_page(purse.database, wanted, limit=5, before_id=None, counted=False)
        return [each.id for each in page.items]

    waits, message = await purse.sent(1_100, 2_000), await gone(purse)
    assert waits is not None
    for _ in range(2):
        assert [await listed("queued"), await listed("sent")] == [[waits.id], [message.id]]
        await purse.due()
    read = await purse.read(message)
    (export,) = [each for each in EXPORTED if each.channel == RCS]
    assert (read.status, export.status(read.status, read.sent_at), export.status("queued", None)) == (
        "queued", "sent", "queued",
    )  # fmt: skip


async def test_of_a_suspended_organization_nothing_is_taken_back_until_that_is_over(purse: RcsPurse) -> None:
    """C24.1: else its SMS would wait as well, and the person would have neither."""
    message = await gone(purse)
    await purse.database.execute("update organizations set status = 'suspended'")
    await purse.due()
    assert (purse.provider.asked, (await purse.read(message)).status) == ([], "sent")
    await purse.database.execute("update organizations set status = 'active'")
    await purse.due()
    assert (len(purse.provider.asked), (await purse.read(message)).status) == (1, "queued")


async def test_a_cheaper_sms_gives_the_difference_back(purse: RcsPurse) -> None:
    message = await gone(purse, own=1_800, sms=1_000)
    await purse.due()
    await purse.claim(message)
    await purse.leave(message)
    assert await purse.costs(message) == [("charge", 1_800), ("adjustment", -800)]
    await check(purse)


async def test_what_cannot_be_taken_back_stays_and_lets_the_rest_of_its_price_go(purse: RcsPurse) -> None:
    refused = ProviderError("refused", "provider_error", "too late")
    for answer in (False, refused):
        message = await gone(purse)
        await purse.due(answer)
        assert (await purse.read(message)).status == "sent"
        assert await purse.costs(message) == [("charge", 1_100)]
    assert (await purse.standing())[1] == 0
    assert purse.told == []


ERASED = "recipient = '+55*********21', recipient_hash = null, payload = null"
TO_BE_ERASED = "contact_id = 'ctc_1'"


@pytest.mark.parametrize(("meanwhile", "change"), [(False, ERASED), (True, ERASED), (True, TO_BE_ERASED)])
async def test_what_was_for_a_contact_that_is_deleted_gets_no_sms(
    purse: RcsPurse, meanwhile: bool, change: str
) -> None:
    message = await gone(purse)

    async def erase(*_: Any) -> bool:
        await purse.database.execute(f"update messages set {change} where id = $1", message.id)
        return True

    if meanwhile:
        purse.provider.revoke = erase  # type: ignore[method-assign]
    else:
        await erase()
    await purse.due()
    assert (await purse.read(message)).status == "sent"
    assert (purse.provider.asked, purse.told) == ([], [])
    assert await purse.standing() == (1_000_000 - 1_100, 0)
    assert not await purse.database.fetchval("select exists (select from dispatch where id = $1)", message.id)


BATCH = """
insert into batches (
    organization_id, env, id, channel, sender_id, type, class, status, requested, skipped, skipped_reasons, errors,
    ttl_ms, held_base_ms, blocks_left, open, finished_at, updated_at
)
values ($1, $2, 'btc_1', 'rcs', 'rte_1', 'text', 2, $3, 1, 0, '{}', '[]', 0, 0, 0, false, $4, now())
"""
JOURNEY = """
insert into journeys (
    organization_id, env, id, chain_id, status, entradas_encerradas, withdrawn, name, fuso_horario, gatilho, inicio,
    reentrada, intervalo_reentrada_horas, passos, canais, fluxo, uses, updated_at
)
values ($1, $2, 'jrn_1', 'jrn_1', $3, $4, $5, 'Welcome', 'UTC', '{}', 'a', 'nunca', 0, '[]', '{}', '{}', '{}', now())
"""
EXECUTION = """
insert into executions (
    organization_id, env, journey_id, id, chain_id, versao, contact_id, status, motivo, origem, teste, hurried, entrada,
    step_id, arrived_at, started_at
)
values ($1, $2, 'jrn_1', 'exe_1', 'jrn_1', 1, 'ctc_1', $3, $4, 'api', $5, false, '{}', 'a', now(), now())
"""
OF_JOURNEY = "update messages set journey_id = 'jrn_1', metadata = '{\"journeyRunId\": \"exe_1\"}' where id = $1"


async def queued_as(purse: RcsPurse, message: NewMessage) -> tuple[str, str] | None:
    """Whose its SMS is in the queue; None: there is none, nothing was taken back, and the rest of the price is free."""
    row = await purse.database.fetchrow("select owner, source_kind from dispatch where id = $1", message.id)
    if row is None:
        assert (await purse.read(message)).status == "sent"
        assert (purse.provider.asked, purse.told) == ([], [])
        assert await purse.standing() == (1_000_000 - 1_100, 0)
    await check(purse)
    return None if row is None else tuple(row)


@pytest.mark.parametrize(
    ("status", "over_for", "owner"),
    [
        ("running", None, ("btc_1", "batch")),
        ("paused", None, ("btc_1", "batch")),
        ("completed", -1, ("btc_1", "batch")),
        ("canceled", -1, None),
        ("canceled", 1, ("single", "single")),  # it was sent again afterwards
    ],
)
async def test_the_sms_of_a_batch_waits_in_its_turn_and_does_not_outlive_its_cancel(
    purse: RcsPurse, status: str, over_for: int | None, owner: tuple[str, str] | None
) -> None:
    message = await gone(purse)
    await purse.database.execute("update messages set batch_id = 'btc_1' where id = $1", message.id)
    over_at = None if over_for is None else CLOCK.now() - timedelta(hours=over_for)
    await purse.database.execute(BATCH, purse.organization_id, ENV, status, over_at)
    await purse.due()
    assert await queued_as(purse, message) == owner


JOURNEYS_OWN = ("jrn_1", "journey")


@pytest.mark.parametrize(
    ("status", "superseded", "withdrawn", "ended", "test", "owner"),
    [
        ("ativa", False, False, None, False, JOURNEYS_OWN),
        ("pausada", False, False, None, False, JOURNEYS_OWN),
        ("ativa", False, False, ("concluida", "fim"), False, JOURNEYS_OWN),
        ("ativa", False, False, ("concluida", "meta_atingida"), False, None),
        ("ativa", False, False, ("cancelada", "operador"), False, None),
        ("ativa", False, False, ("erro", "falha_interna"), False, JOURNEYS_OWN),
        ("arquivada", False, True, ("concluida", "fim"), False, None),
        ("arquivada", True, False, ("concluida", "fim"), False, JOURNEYS_OWN),
        ("arquivada", True, True, ("concluida", "fim"), False, None),
        ("arquivada", True, True, ("cancelada", "jornada_arquivada"), False, None),
        ("rascunho", False, False, None, True, ("exe_1", "journey")),
    ],
)
async def test_the_sms_of_a_journey_waits_in_its_turn_and_does_not_outlive_what_withdraws(
    purse: RcsPurse,
    status: str,
    superseded: bool,
    withdrawn: bool,
    ended: tuple[str, str] | None,
    test: bool,
    owner: tuple[str, str] | None,
) -> None:
    message = await gone(purse)
    await purse.database.execute(OF_JOURNEY, message.id)
    await purse.database.execute(JOURNEY, purse.organization_id, ENV, status, superseded, withdrawn)
    await purse.database.execute(EXECUTION, purse.organization_id, ENV, *(ended or ("ativa", None)), test)
    await purse.due()
    assert await queued_as(purse, message) == owner
    obeys = await purse.database.fetchval("select obeys_quiet_hours from dispatch where id = $1", message.id)
    assert obeys is (None if owner is None else not test)


async def test_a_batch_that_is_canceled_while_its_message_is_taken_back_sends_no_sms(purse: RcsPurse) -> None:
    message = await gone(purse)
    await purse.database.execute("update messages set batch_id = 'btc_1' where id = $1", message.id)

    async def meanwhile(*_: Any) -> bool:
        await purse.database.execute(BATCH, purse.organization_id, ENV, "canceled", CLOCK.now())
        return True

    purse.provider.revoke = meanwhile  # type: ignore[method-assign]
    await purse.due()
    assert await queued_as(purse, message) is None


@pytest.mark.parametrize("journey", [None, "jrn_1"])
async def test_the_sms_of_a_code_obeys_consent_where_a_journey_sent_it(purse: RcsPurse, journey: str | None) -> None:
    message = await gone(purse)
    await purse.database.execute(
        """update messages set journey_id = $2, details = details || '{"route": "easy_otp_rcs"}' where id = $1""",
        message.id,
        journey,
    )
    await purse.due()
    obeys = await purse.database.fetchval("select consent_hash is not null from dispatch where id = $1", message.id)
    assert obeys is (journey is not None)


async def test_a_provider_that_does_not_say_is_asked_again_and_at_last_no_more(purse: RcsPurse) -> None:
    message = await gone(purse)
    await purse.due(ProviderError("unreachable", "no_answer", "nobody"))
    assert (await purse.standing())[1] == 900
    await purse.due()
    assert (await purse.read(message)).status == "queued"
    other = await gone(purse)
    await purse.database.execute(
        "update messages set sent_at = sent_at - $2::interval where id = $1", other.id, ASK_FOR + timedelta(seconds=31)
    )
    await purse.due(ProviderError("unreachable", "no_answer", "nobody"))
    assert (await purse.read(other)).status == "sent"
    assert await purse.database.fetchval("select count(*) from message_deadlines") == 0


async def test_a_provider_is_asked_again_after_a_suspension_as_long_as_if_there_had_been_none(purse: RcsPurse) -> None:
    late = ASK_FOR + timedelta(seconds=31)
    message = await gone(purse)
    await purse.database.execute("update messages set sent_at = sent_at - $2::interval where id = $1", message.id, late)
    await purse.database.execute("update organizations set held_ms = $1, updated_at = now()", late // MILLISECOND)
    await purse.due(ProviderError("unreachable", "no_answer", "nobody"))
    assert await purse.database.fetchval("select count(*) from message_deadlines") == 1
    await purse.database.execute("update organizations set updated_at = now() - $1::interval", 2 * late)  # long before
    await purse.due(ProviderError("unreachable", "no_answer", "nobody"))
    assert await purse.database.fetchval("select count(*) from message_deadlines") == 0


async def test_a_delivery_ends_the_wait_for_it(purse: RcsPurse) -> None:
    message = await gone(purse)
    await purse.tells(message, "delivered", "rcs")
    assert (await purse.standing())[1] == 0
    await purse.due()
    assert purse.provider.asked == []


async def test_a_delivery_while_its_provider_takes_it_back_sends_no_sms(purse: RcsPurse) -> None:
    message = await gone(purse)

    async def meanwhile(message_id: str, provider_message_id: str, to: str, account: Account) -> bool:
        await purse.tells(message, "delivered", "rcs")
        return True

    purse.provider.revoke = meanwhile  # type: ignore[method-assign]
    await purse.due()
    assert (await purse.read(message)).status == "delivered"
    assert purse.told == []
    assert await purse.costs(message) == [("charge", 1_100)]
    await check(purse)


async def test_what_rcs_tells_after_the_sms_left_counts_only_when_it_arrived(purse: RcsPurse) -> None:
    message = await gone(purse)
    await purse.due()
    for report in ("sent", "failed"):  # in the queue
        await purse.tells(message, report, "rcs")
    await purse.claim(message)
    for report in ("sent", "failed"):  # in hand
        await purse.tells(message, report, "rcs")
    assert (await purse.read(message)).status == "queued"
    await purse.leave(message)
    await purse.tells(message, "failed", "rcs")
    assert (await purse.read(message)).status == "sent"
    await purse.tells(message, "delivered", "rcs")
    assert (await purse.read(message)).status == "delivered"
    assert await purse.costs(message) == [("charge", 1_100), ("adjustment", 900)]


async def test_a_negative_report_on_the_sms_fails_it(purse: RcsPurse) -> None:
    message = await gone(purse)
    await purse.due()
    await purse.claim(message)
    await purse.leave(message)
    await purse.tells(message, "failed", "sms")
    read = await purse.read(message)
    assert (read.status, read.failure_code) == ("failed", "carrier_rejected")


async def test_a_report_that_is_faster_than_the_answer_charges_the_way_that_it_took(purse: RcsPurse) -> None:
    for report in ("sent", "delivered"):
        message = await purse.sent(1_100, 2_000)
        assert message is not None
        await purse.claim(message)
        await purse.tells(message, report, "rcs")
        await purse.leave(message)
        assert await purse.costs(message) == [("charge", 1_100)]
    await check(purse)


async def test_an_sms_that_is_reported_before_its_answer_books_the_difference_once(purse: RcsPurse) -> None:
    message = await gone(purse)
    await purse.due()
    await purse.claim(message)
    await purse.tells(message, "delivered", "sms")
    await purse.leave(message)
    assert await purse.costs(message) == [("charge", 1_100), ("adjustment", 900)]
    assert (await purse.standing())[1] == 0


async def test_an_sms_that_is_refused_after_all_costs_no_more_than_what_left(purse: RcsPurse) -> None:
    message = await gone(purse)
    await purse.due()
    await purse.claim(message)
    await purse.refuse(message, "invalid_number")
    assert (await purse.read(message)).status == "failed"
    assert await purse.costs(message) == [("charge", 1_100)]
    assert (await purse.standing())[1] == 0


@pytest.mark.parametrize("by_their_id", [False, True])
async def test_a_gateway_of_sms_reports_on_what_it_carries(purse: RcsPurse, by_their_id: bool) -> None:
    message = await gone(purse)
    await purse.due()
    await purse.claim(message)
    await purse.leave(message, LookUps("gateway_a", "bridge", theirs=True, ours=True))
    nobody_writes = Mock(take_in=AsyncMock(side_effect=lambda *_: Gathered()))
    told = Receipts(
        purse.database,
        clock=CLOCK,
        consequences=purse.consequences,
        inbound=nobody_writes,
        gateways={SMS_BRIDGE: ["gateway_a"]},
    )
    named = {"provider_message_id": f"p-{message.id}"} if by_their_id else {"reference": message.id}
    async with told.transaction() as connection:
        await told.take_in(connection, SMS_BRIDGE, [Status("delivered", CLOCK.now(), account="gateway_a", **named)])
    assert (await purse.read(message)).status == "delivered"
    other = await purse.sent(1_100, None)
    assert other is not None
    async with told.transaction() as connection:  # of a message that it does not carry it knows nothing
        await told.take_in(connection, SMS_BRIDGE, [Status("delivered", CLOCK.now(), None, other.id)])
    assert (await purse.read(other)).status == "queued"


async def test_whoever_answers_the_sms_answers_whoever_sent_it(purse: RcsPurse) -> None:
    message = await gone(purse)
    await purse.due()
    await purse.claim(message)
    await purse.leave(message)
    rows = await purse.database.fetch("select channel, sender_id from reached_recipients order by channel")
    assert [tuple(row) for row in rows] == [("rcs", EASY), ("sms", BY_SMS)]


which = st.integers(0, 9)
STEPS = st.one_of(
    st.tuples(st.just("send"), st.sampled_from([0, 800, 1_100]), st.sampled_from([None, 0, 700, 2_000])),
    st.tuples(st.sampled_from(["claim", "leave", "refuse", "unwanted", "expire", "lost"]), which),
    st.tuples(st.just("tells"), which, st.sampled_from(["sent", "delivered", "read", "failed"]), st.booleans()),
    st.tuples(st.just("due"), st.sampled_from([True, False, None])),
)


@settings(
    max_examples=examples(60),
    deadline=timedelta(seconds=30),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEPS, min_size=5, max_size=40))
async def test_whatever_happens_it_is_paid_for_as_what_it_left_by(
    database: Database, steps: list[tuple[Any, ...]]
) -> None:
    purse = RcsPurse(database)
    await purse.open()
    await purse.credit(20_000)
    sent: list[NewMessage] = []
    for step, *how in steps:
        await one(purse, sent, step, how)
        await check(purse)
    for message in sent:
        read = await purse.read(message)
        details = read.details or {}
        own, sms = details["price"]["coins"], details.get("fallback", {}).get("price", {}).get("coins", 0)
        charged = sum(coins for _, coins in await purse.costs(message))
        assert charged in (0, own, sms)
        if read.sent_at is None:
            assert charged == 0
        elif details["deliveredVia"] == "rcs":
            assert charged == own
    # Of examples before this one, too, messages are due in the same database: only the route by SMS is told.
    assert {(each.env, each.channel, each.sender_id) for each in purse.told} <= {(ENV, RCS, BY_SMS)}


async def one(purse: RcsPurse, sent: list[NewMessage], step: str, how: list[Any]) -> None:
    if step == "send":
        message = await purse.sent(*how)
        if message is not None:
            sent.append(message)
        return
    if step == "due":
        await purse.due(ProviderError("unreachable", "no_answer", "nobody") if how[0] is None else how[0])
        return
    if not sent:
        return
    message = sent[how[0] % len(sent)]
    read = await purse.read(message)
    carrier = (read.details or {})["deliveredVia"]
    claimed = await purse.database.fetchval("select claimed_epoch from dispatch where id = $1", message.id)
    match step:
        case "claim":
            await purse.claim(message)
        case "tells":
            _, report, former = how
            await purse.tells(message, report, "rcs" if former else carrier)
        case "expire":
            await purse.fail(message, FailureCode.EXPIRED, queued=True)
        case _ if claimed is None:
            pass  # nobody calls for it
        case "leave":
            await purse.leave(message)
        case "refuse":
            await purse.refuse(message)
        case "unwanted":
            await purse.refuse(message, FailureCode.OPTED_OUT)
        case "lost":
            key = (purse.organization_id, ENV, RCS, message.id)
            row = Failed(*key, POLICY.unanswered, CLOCK.now(), False, CLOCK.now())
            async with purse.database.hot.transaction() as connection:
                moved = await settlements.failed(connection, [row])
                committed = await purse.consequences.write(connection, moved)
            committed()


async def test_one_organization_with_many_makes_no_other_wait(purse: RcsPurse) -> None:
    for _ in range(3):
        await gone(purse)
    other = RcsPurse(purse.database)
    await other.open()
    await other.credit(1_000_000)
    await gone(other)
    await purse.database.execute(
        "update message_deadlines set due_at = $1::timestamptz"
        " - case when organization_id = $2 then 1 else 0 end * interval '1 hour'",
        CLOCK.now(), purse.organization_id,
    )  # fmt: skip
    due = await message_deadlines.due_fallbacks(purse.database, CLOCK.now(), 2, 1)
    assert [each.organization_id for each in due] == [purse.organization_id, other.organization_id]
