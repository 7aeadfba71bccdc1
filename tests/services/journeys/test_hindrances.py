"""Journeys that cannot go on pause themselves, whoever moves them at that moment, and go on when they can (C9.8.4)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.acme import acme
from tests.services.journeys.conftest import BORN, END, ENV, HOUR, Way, approved_template, sms, wait
from tests.storage.journeys.rows import new_entry
from tests.waiting import until_locked_out

from recado.domain.journeys.execution import Awaited, EndReason, ExecutionOrigin, ExecutionStatus
from recado.domain.journeys.journey import FAILURES_IN_A_ROW, JourneyStatus
from recado.services.journeys import execution_turns
from recado.services.journeys.hindrances import JourneyPauses
from recado.storage.billing import ledger
from recado.storage.core.connections.postgres import Connection
from recado.storage.journeys import hindrances, states
from recado.storage.journeys.entries import begin_test
from recado.storage.journeys.executions import Execution
from recado.storage.journeys.journeys import JOURNEYS, Journey

AT = "2026-11-23T12:00:00.000Z"


class Looks(JourneyPauses):
    """`resumed`: how often it was said that executions go on."""

    def __init__(self, way: Way) -> None:
        super().__init__(way.db, clock=way.clock, paused=way.paused.append, resumed=self._count)
        self.resumed = 0

    def _count(self) -> None:
        self.resumed += 1


async def another(way: Way) -> Way:
    """Another organization, whose executions take the same turns."""
    made = await acme(way.db, way.clock, way.ids)
    return replace(way, organization=made.organization, number=made.number)


async def credit(way: Way, coins: int) -> None:
    async with way.db.transaction() as connection:
        await ledger.credit(
            connection, way.ids, organization_id=way.organization.id, env=ENV, kind=ledger.ADJUSTMENT, coins=coins,
            description=None, reference=None, now=way.clock.now(),
        )  # fmt: skip


async def empty(way: Way, left: int = 0) -> None:
    """The wallet has nothing available but this."""
    found = await ledger.get(way.db, way.organization.id, ENV)
    assert found is not None
    await credit(way, left - found.available_coins)


async def now(way: Way, journey: Journey) -> Journey:
    found = await JOURNEYS.get(way.db, way.organization.id, ENV, journey.id)
    assert found is not None
    return found


async def standing(way: Way, journey: Journey) -> tuple[JourneyStatus, str | None]:
    """The state of a journey, and what it paused itself for."""
    found = await now(way, journey)
    return found.status, None if found.pausada_por is None else found.pausada_por["motivo"]


async def price(way: Way) -> int:
    """Of an SMS of one segment, in a journey of another organization."""
    other = await another(way)
    await other.begin(await other.journey(sms("hello", "end"), END))
    await other.work()
    return int(way.accepted.pop().coins or 0)


async def trial(way: Way, journey: Journey) -> Execution:
    """A test of a journey, which is due."""
    entry = new_entry(await way.person(), journey, at=way.clock.now(), origin=ExecutionOrigin.TEST)
    await begin_test(way.db, way.organization.id, ENV, entry, hurried=True)
    return await way.read((way.organization.id, ENV, journey.id, entry.execution_id))


async def chat(way: Way) -> dict[str, Any]:
    """A step that sends a template called `welcome`."""
    return {
        "id": "hello", "tipo": "enviar", "canal": "chatapp", "templateId": await approved_template(way),
        "numberId": way.number.id, "variaveis": {"1": {"de": "fixo", "valor": "you"}}, "proximo": "end",
    }  # fmt: skip


# A wallet that does not cover a message ------------------------------------------------------------------------------

PAUSED = (JourneyStatus.PAUSADA, "saldo_insuficiente")
RUNS = (JourneyStatus.ATIVA, None)


async def test_what_one_wallet_does_not_cover_holds_up_its_own_journey_only(way: Way) -> None:
    other = await another(way)
    journey = await way.journey(sms("hello", "end"), END)
    without_sends = await way.journey(wait("wait", "end"), END)
    theirs = await other.journey(sms("hello", "end"), END)
    began = [await way.begin(journey) for _ in range(2)]
    going = [await other.begin(theirs) for _ in range(2)]
    await empty(way)
    assert (await way.turns.take()).count == 4
    for each in began:
        held = await way.read(each.key)
        assert (held.step_id, held.awaited, held.wake_at, held.overslept) == ("hello", Awaited.RESUME, None, True)
    paused = await now(way, journey)
    assert (paused.status, paused.pausada_em) == (JourneyStatus.PAUSADA, BORN)
    assert paused.pausada_por == {"motivo": "saldo_insuficiente", "passo": "hello", "em": AT}
    assert await standing(way, without_sends) == RUNS
    assert [(await way.read(each.key)).step_id for each in going] == ["end"] * 2
    assert await standing(other, theirs) == RUNS
    assert {new.organization_id for new in way.accepted} == {other.organization.id}
    assert (await way.turns.take()).count == 0  # what waits for coins is not due any more, and the others are over
    assert await way.turns.rouse() == 0


async def test_a_journey_goes_on_by_itself_when_its_wallet_covers_what_it_lacked(way: Way) -> None:
    looks, coins = Looks(way), await price(way)
    journey = await way.journey(sms("hello", "end"), END)
    execution = await way.begin(journey)
    await empty(way)
    await way.work()
    await looks.look()
    assert (await standing(way, journey), looks.resumed) == (PAUSED, 0)
    await credit(way, coins - 1)
    await looks.look()
    assert (await standing(way, journey), looks.resumed) == (PAUSED, 0)
    await credit(way, 1)
    await looks.look()
    running = await now(way, journey)
    assert (running.status, running.pausada_por, running.pausada_em) == (JourneyStatus.ATIVA, None, None)
    assert looks.resumed == 1
    await way.work()
    assert (await way.read(execution.key)).motivo is EndReason.FINISHED
    assert len(way.accepted) == 1
    await looks.look()
    assert looks.resumed == 1


async def test_what_is_released_lets_it_go_on_as_well(way: Way) -> None:
    looks = Looks(way)
    first = await way.begin(await way.journey(sms("hello", "wait"), wait("wait", "end"), END))
    await way.work()
    await empty(way)
    journey = await way.journey(sms("hello", "end"), END)
    await way.begin(journey)
    await way.work()
    await looks.look()
    assert await standing(way, journey) == PAUSED
    await way.db.execute("delete from contacts where id = $1", first.contact_id)  # what is queued for it is withdrawn
    await way.work(HOUR)
    await looks.look()
    assert await standing(way, journey) == RUNS


async def test_what_paused_for_another_cause_or_by_a_person_stays_paused(way: Way) -> None:
    looks = Looks(way)
    by_a_person = await way.journey(END, status=JourneyStatus.PAUSADA)
    cause = {"motivo": "numero_indisponivel", "passo": "end", "em": AT}
    by_another_cause = await way.journey(END, status=JourneyStatus.PAUSADA, pausada_por=cause)
    await looks.look()
    assert await standing(way, by_a_person) == (JourneyStatus.PAUSADA, None)
    assert await standing(way, by_another_cause) == (JourneyStatus.PAUSADA, "numero_indisponivel")


async def test_of_more_than_a_look_takes_each_has_its_turn(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recado.services.journeys.hindrances.BLOCK", 2)
    looks, other = Looks(way), await another(way)
    cause = {"motivo": "saldo_insuficiente", "passo": "end", "em": AT}
    poor = [await way.journey(END, status=JourneyStatus.PAUSADA, pausada_por=cause) for _ in range(3)]
    rich = await other.journey(END, status=JourneyStatus.PAUSADA, pausada_por=cause)
    await empty(way)
    for _ in range(2):
        await looks.look()
    assert await standing(other, rich) == RUNS
    assert [await standing(way, each) for each in poor] == [PAUSED] * 3
    await credit(way, 1)
    for _ in range(3):  # the first one finds the end
        await looks.look()
    assert [await standing(way, each) for each in poor] == [RUNS] * 3


async def test_a_test_that_is_not_paid_pauses_nothing(way: Way) -> None:
    journey = await way.journey(sms("hello", "end"), END)
    execution = await trial(way, journey)
    await empty(way)
    await way.work()
    held = await way.read(execution.key)
    assert (held.step_id, held.awaited, held.wake_at) == ("hello", Awaited.RESUME, BORN + timedelta(minutes=1))
    assert await standing(way, journey) == RUNS


# At the same moment --------------------------------------------------------------------------------------------------


async def moved(way: Way, connection: Connection, journey: Journey, *, on: bool) -> None:
    """A person pauses the journey; `on`: and lets it go on."""
    before = await JOURNEYS.get_locked(connection, way.organization.id, ENV, journey.id)
    assert before is not None
    paused = await states.pause(connection, before, way.clock.now())
    if on:
        await states.activate(connection, paused, way.clock.now())


@pytest.mark.parametrize("on", [False, True])
async def test_a_person_who_moves_it_at_the_same_moment_has_the_say(way: Way, on: bool) -> None:
    journey = await way.journey(sms("hello", "end"), END, ativada_em=BORN)
    execution = await way.begin(journey)
    await empty(way)
    async with way.db.transaction() as connection:
        await moved(way, connection, journey, on=on)
        assert (await way.turns.take()).count == 1  # which waits for nobody
        assert (await way.read(execution.key)).overslept
    assert await standing(way, journey) == (RUNS if on else (JourneyStatus.PAUSADA, None))
    await way.work()
    # What hindered the execution before does so now: of a journey that runs it is asked once more.
    assert await standing(way, journey) == (PAUSED if on else (JourneyStatus.PAUSADA, None))
    assert (await way.read(execution.key)).overslept


async def test_one_whom_somebody_has_in_hand_for_long_holds_up_no_turn(way: Way) -> None:
    journey = await way.journey(sms("hello", "end"), END)
    await way.begin(journey)
    await empty(way)
    async with way.db.transaction() as connection:
        await JOURNEYS.get_locked(connection, way.organization.id, ENV, journey.id)
        assert (await way.turns.take()).count == 1
    assert await standing(way, journey) == RUNS
    await way.work()
    assert await standing(way, journey) == PAUSED


async def test_a_journey_that_pauses_itself_is_told_at_once(way: Way) -> None:
    journey, other = await way.journey(sms("hello", "end"), END), await way.journey(END)
    for each in (journey, other):
        await way.begin(each)
    await empty(way)
    await way.turns.take()
    assert way.paused == [(await now(way, journey)).pauses]
    assert way.paused[0].paused_at == BORN


async def test_a_process_that_dies_between_turn_and_pause_leaves_nothing_undone(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    journey = await way.journey(sms("hello", "end"), END)
    execution = await way.begin(journey)
    await empty(way)

    async def dying(*_: Any) -> None:
        raise ConnectionResetError

    with monkeypatch.context() as patched:
        patched.setattr(execution_turns, "pause_hindered", dying)
        with pytest.raises(ConnectionResetError):
            await way.turns.take()
    assert await standing(way, journey) == RUNS
    await way.work()
    assert await standing(way, journey) == PAUSED
    assert (await way.read(execution.key)).overslept


async def test_what_others_spend_during_a_turn_is_not_counted_on(way: Way) -> None:
    other = await another(way)
    journey, theirs = [await each.journey(sms("hello", "end"), END) for each in (way, other)]
    await way.begin(journey)
    going = await other.begin(theirs)
    async with way.db.transaction() as connection:
        await connection.execute(
            "update wallets set held_coins = balance_coins where organization_id = $1", way.organization.id
        )
        turn = asyncio.ensure_future(way.turns.take())
        await until_locked_out(way.db)
    assert (await turn).count == 2
    assert await standing(way, journey) == PAUSED
    assert (await way.read(going.key)).step_id == "end"


@pytest.mark.parametrize("low_pays", [True, False])
async def test_wallets_are_locked_in_one_order_though_one_gets_back_and_the_other_pays(
    way: Way, low_pays: bool
) -> None:
    wallets = {}
    for each in (way, await another(way)):
        found = await ledger.get(way.db, each.organization.id, ENV)
        assert found is not None
        wallets[found.id] = each
    low, high = sorted(wallets)
    pays, gets_back = (wallets[low], wallets[high]) if low_pays else (wallets[high], wallets[low])
    ending = await gets_back.begin(await gets_back.journey(sms("hello", "wait"), wait("wait", "end"), END))
    await way.work()
    await way.db.execute("update contacts set opt_in_status = 'denied' where id = $1", ending.contact_id)
    await way.turns.hear()
    going = await pays.begin(await pays.journey(sms("hello", "end"), END))
    async with way.db.transaction() as connection:
        await connection.execute("select from wallets where id = $1 for update", low)
        turn = asyncio.ensure_future(way.turns.take())
        await until_locked_out(way.db)
        await connection.execute("select from wallets where id = $1 for update nowait", high)
    assert (await turn).count == 2
    assert (await way.read(ending.key)).motivo is EndReason.OPTED_OUT
    assert (await way.read(going.key)).step_id == "end"
    held = await way.db.fetch("select id, held_coins from wallets where id = any($1::text[])", [low, high])
    assert sorted(row["held_coins"] for row in held) == [0, way.accepted[-1].coins]


# A template or a number that is gone ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "reason", "label"),
    [
        ("update templates set status = 'rejected'", "modelo_indisponivel", "welcome"),
        ("update templates set status = 'disabled'", "modelo_indisponivel", "welcome"),
        ("update templates set deleted_at = now()", "modelo_indisponivel", "welcome"),
        ("update numbers set status = 'disconnected'", "numero_indisponivel", "Sandbox"),
        ("update numbers set deleted_at = now()", "numero_indisponivel", "Sandbox"),
        ("update numbers set partner_removed_at = now()", "numero_indisponivel", "Sandbox"),
        ("update numbers set partner_removed_at = now(), verified_name = null", "numero_indisponivel", None),
    ],
)
async def test_a_journey_whose_template_or_number_is_gone_leaves_the_send_out_and_pauses(
    way: Way, change: str, reason: str, label: str | None
) -> None:
    journey = await way.journey(await chat(way), END)
    execution = await way.begin(journey)
    await way.db.execute(change)
    await way.work()
    assert await way.trail(execution) == [("hello", "pulado", reason)]
    assert (await way.read(execution.key)).step_id == "end"
    told = {"motivo": reason, "passo": "hello", "em": AT} | ({} if label is None else {"rotulo": label})
    paused = await now(way, journey)
    assert (paused.status, paused.pausada_por) == (JourneyStatus.PAUSADA, told)
    await Looks(way).look()
    assert (await now(way, journey)).status is JourneyStatus.PAUSADA
    await way.db.execute("update journeys set status = 'ativa', pausada_por = null")
    await way.work()
    assert (await way.read(execution.key)).motivo is EndReason.FINISHED
    assert way.accepted == []


@pytest.mark.parametrize(
    "change",
    [
        "update templates set status = 'paused'",
        "update templates set status = 'pending'",
        "update numbers set status = 'pending'",
    ],
)
async def test_what_may_come_back_by_itself_is_only_left_out(way: Way, change: str) -> None:
    journey = await way.journey(await chat(way), END)
    execution = await way.begin(journey)
    await way.db.execute(change)
    await way.work()
    assert (await way.trail(execution))[0][1] == "pulado"
    assert (await way.read(execution.key)).status is ExecutionStatus.CONCLUIDA
    assert await standing(way, journey) == RUNS


async def test_a_test_whose_template_is_gone_goes_on_and_pauses_nothing(way: Way) -> None:
    journey = await way.journey(await chat(way), END)
    execution = await trial(way, journey)
    await way.db.execute("update templates set status = 'disabled'")
    await way.work()
    assert await way.trail(execution) == [("hello", "pulado", "modelo_indisponivel"), ("end", "fim", None)]
    assert await standing(way, journey) == RUNS


# Failures in a row ---------------------------------------------------------------------------------------------------

FAILED = (JourneyStatus.PAUSADA, "falhas_consecutivas")


async def end(way: Way, ids: Sequence[str], *, code: str = "provider_error", certain: bool = True) -> None:
    """These messages have failed."""
    await way.db.execute(
        "update messages set status = 'failed', failed_at = $2, outcome_certain = $3, failure_code = $4"
        " where id = any($1::text[])",
        ids, way.clock.now(), certain, code,
    )  # fmt: skip


async def sent(way: Way, journey: Journey, count: int) -> list[str]:
    """So many messages of it, in their order."""
    before = len(way.accepted)
    for _ in range(count):
        await way.begin(journey)
    await way.work()
    return sorted(new.id for new in way.accepted[before:])


@pytest.fixture
def three_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hindrances, "FAILURES_IN_A_ROW", 3)


async def test_fifty_messages_of_a_step_that_fail_in_a_row_pause_their_journey(way: Way) -> None:
    looks = Looks(way)
    journey, other = [await way.journey(sms("hello", "end"), END) for _ in range(2)]
    ids = await sent(way, journey, FAILURES_IN_A_ROW)
    await end(way, await sent(way, other, 1))
    await end(way, ids[1:])
    await looks.look()
    assert (len(ids), await standing(way, journey)) == (50, RUNS)
    await end(way, ids[:1])
    await looks.look()
    assert await standing(way, journey) == RUNS  # of the first one, nothing before it has failed
    await end(way, await sent(way, journey, 1))
    await looks.look()
    paused = await now(way, journey)
    assert paused.pausada_por == {"motivo": "falhas_consecutivas", "passo": "hello", "em": AT}
    assert (await standing(way, journey), await standing(way, other)) == (FAILED, RUNS)
    assert await way.db.fetchval("select count(*) from journey_failures") == 0


@pytest.mark.usefixtures("three_in_a_row")
async def test_a_journey_that_somebody_has_in_hand_is_paused_at_the_next_look(way: Way) -> None:
    looks, journey = Looks(way), await way.journey(sms("hello", "end"), END)
    await end(way, await sent(way, journey, 3))
    async with way.db.transaction() as entering:
        await entering.execute("select from journeys where id = $1 for share", journey.id)
        await looks.look()
    assert await standing(way, journey) == RUNS
    await looks.look()
    assert await standing(way, journey) == FAILED


@pytest.mark.usefixtures("three_in_a_row")
async def test_a_message_that_arrived_begins_the_row_anew(way: Way) -> None:
    looks = Looks(way)
    journey = await way.journey(sms("hello", "end"), END)
    ids = await sent(way, journey, 6)
    await way.db.execute("update messages set status = 'delivered', sent_at = $2 where id = $1", ids[2], BORN)
    await end(way, [*ids[:2], *ids[3:5]])
    await looks.look()
    assert await standing(way, journey) == RUNS
    await end(way, ids[5:])
    await looks.look()
    assert await standing(way, journey) == FAILED


@pytest.mark.usefixtures("three_in_a_row")
@pytest.mark.parametrize(("code", "certain"), [("opted_out", True), ("withdrawn", True), ("outcome_unknown", False)])
async def test_what_people_end_and_what_may_have_arrived_is_no_failure(way: Way, code: str, certain: bool) -> None:
    looks = Looks(way)
    journey = await way.journey(sms("hello", "end"), END)
    ids = await sent(way, journey, 3)
    await end(way, ids[:1], code=code, certain=certain)
    await end(way, ids[1:])
    await looks.look()
    assert await standing(way, journey) == RUNS


@pytest.mark.usefixtures("three_in_a_row")
async def test_each_step_has_a_row_of_its_own(way: Way) -> None:
    looks = Looks(way)
    journey = await way.journey(sms("hello", "more"), sms("more", "end"), END)
    ids = await sent(way, journey, 3)  # two of each: what one execution sends, and then another
    steps = {
        row["message_id"]: row["step_id"]
        for row in await way.db.fetch("select message_id, step_id from execution_steps where message_id is not null")
    }
    hellos = [each for each in ids if steps[each] == "hello"]
    mores = [each for each in ids if steps[each] == "more"]
    assert (len(hellos), len(mores)) == (3, 3)
    await end(way, [*hellos[:2], *mores[:2]])
    await looks.look()
    assert await standing(way, journey) == RUNS
    await end(way, mores[2:])
    await looks.look()
    assert (await now(way, journey)).pausada_por == {"motivo": "falhas_consecutivas", "passo": "more", "em": AT}


@pytest.mark.usefixtures("three_in_a_row")
async def test_one_that_was_activated_again_needs_another_row(way: Way) -> None:
    looks = Looks(way)
    journey = await way.journey(sms("hello", "end"), END, ativada_em=BORN)
    await end(way, await sent(way, journey, 3))
    await looks.look()
    paused = await now(way, journey)
    assert paused.status is JourneyStatus.PAUSADA
    async with way.db.transaction() as connection:
        await states.activate(connection, paused, way.clock.now())
    ids = await sent(way, journey, 3)
    await end(way, ids[:2])
    await looks.look()
    assert await standing(way, journey) == RUNS
    await end(way, ids[2:])
    await looks.look()
    assert await standing(way, journey) == FAILED


@pytest.mark.usefixtures("three_in_a_row")
async def test_messages_of_tests_are_in_no_row(way: Way) -> None:
    looks = Looks(way)
    journey = await way.journey(sms("hello", "end"), END)
    for _ in range(3):
        await trial(way, journey)
    await way.work()
    await end(way, [new.id for new in way.accepted])
    await looks.look()
    assert await standing(way, journey) == RUNS


@pytest.mark.usefixtures("three_in_a_row")
async def test_more_failures_than_a_look_takes_at_once_are_all_looked_at(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recado.services.journeys.hindrances.BLOCK", 2)
    looks = Looks(way)
    journeys = [await way.journey(sms("hello", "end"), END) for _ in range(2)]
    for each in journeys:
        await end(way, await sent(way, each, 3))
    await looks.look()
    assert [await standing(way, each) for each in journeys] == [FAILED] * 2
