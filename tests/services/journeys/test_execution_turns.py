"""Executions take their turns: what a step does and the move to the next one are one commit, once (C9.12, C9.15)."""

from datetime import timedelta
from typing import Any

import pytest
from tests.services.journeys.conftest import BORN, END, ENV, HOUR, Way, approved_template, sms, wait

from recado.domain.core.errors import Unavailable
from recado.domain.journeys.execution import Awaited, EndReason, ExecutionStatus
from recado.domain.journeys.journey import JourneyStatus
from recado.services.journeys.hindrances import JourneyPauses
from recado.services.journeys.superseded_versions import SupersededVersions
from recado.storage.billing import ledger
from recado.storage.journeys import executions

NAME = {"de": "contato", "campo": "name"}
SECOND = timedelta(seconds=1)


async def test_a_contact_goes_all_the_way_and_each_step_is_told_once(way: Way) -> None:
    field = {"id": "field", "tipo": "condicao", "campo": "entrada.total", "operador": "maior", "valor": 10}
    journey = await way.journey(
        sms("hello", "wait"), wait("wait", "field"), {**field, "sim": "more", "nao": "end"}, sms("more", "end"), END
    )
    execution = await way.begin(journey, total=12.5)
    await way.work()
    waiting = await way.read(execution.key)
    assert (waiting.step_id, waiting.awaited, waiting.awaited_until) == ("wait", Awaited.TIME, BORN + HOUR)
    assert waiting.wake_at == BORN + HOUR
    await way.work(HOUR - SECOND)
    assert (await way.read(execution.key)).step_id == "wait"
    await way.work(SECOND)
    over = await way.read(execution.key)
    assert (over.status, over.motivo, over.ended_at) == (
        ExecutionStatus.CONCLUIDA,
        EndReason.FINISHED,
        BORN + HOUR,
    )
    assert await way.trail(execution) == [
        ("hello", "enviado", None),
        ("wait", "esperou", None),
        ("field", "sim", None),
        ("more", "enviado", None),
        ("end", "fim", None),
    ]
    assert [new.recipient for new in way.accepted] == ["+4915000000001"] * 2
    assert (over.wake_at, over.awaited) == (None, None)


async def test_a_message_is_one_of_its_journey_and_says_which_step_made_it(way: Way) -> None:
    journey = await way.journey(sms("hello", "end"), END)
    execution = await way.begin(journey)
    await way.work()
    row = await way.db.fetchrow(
        "select d.owner, d.source_kind, d.class, d.consent_hash, m.* from messages m join dispatch d using (id)"
    )
    assert (row["owner"], row["source_kind"], row["class"]) == (journey.id, "journey", 1)
    assert row["consent_hash"] is not None  # they count as communications
    assert (row["contact_id"], row["campaign_id"], row["channel"]) == (execution.contact_id, None, "sms")
    assert [step.message_id for step in await executions.trail(way.db, way.organization.id, execution.id)] == [
        row["id"],
        None,
    ]
    assert row["metadata"] == (
        f'{{"journeyId":"{journey.id}","journeyStepId":"hello","journeyRunId":"{execution.id}"}}'
    )
    assert row["price_coins"] == (await ledger.get(way.db, way.organization.id, ENV)).held_coins  # type: ignore[union-attr]


async def test_a_template_gets_its_variables_from_the_contact(way: Way) -> None:
    template_id = await approved_template(way)
    send = {
        "id": "hello", "tipo": "enviar", "canal": "chatapp", "templateId": template_id, "numberId": way.number.id,
        "variaveis": {"1": NAME, "2": {"de": "fixo", "valor": "not used"}}, "proximo": "end",
    }  # fmt: skip
    journey = await way.journey(send, END)
    named, nameless = await way.begin(journey, await way.person(name="Ana")), await way.begin(journey)
    await way.work()
    assert [(new.template_id, new.template_vars) for new in way.accepted] == [(template_id, '["Ana"]')]
    assert await way.trail(named) == [("hello", "enviado", None), ("end", "fim", None)]
    assert await way.trail(nameless) == [("hello", "pulado", "variavel_vazia"), ("end", "fim", None)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("update templates set status = 'paused'", "modelo_indisponivel"),
        ("update numbers set status = 'available'", "numero_indisponivel"),
        ("update templates set components = '[]'", None),
    ],
)
async def test_a_message_that_cannot_be_made_is_left_out(way: Way, change: str, reason: str | None) -> None:
    template_id = await approved_template(way)
    send = {
        "id": "hello", "tipo": "enviar", "canal": "chatapp", "templateId": template_id, "numberId": way.number.id,
        "variaveis": {"1": {"de": "fixo", "valor": "you"}}, "proximo": "end",
    }  # fmt: skip
    execution = await way.begin(await way.journey(send, END))
    await way.db.execute(change)
    await way.work()
    told = ("hello", "enviado", None) if reason is None else ("hello", "pulado", reason)
    assert await way.trail(execution) == [told, ("end", "fim", None)]
    assert len(way.accepted) == (reason is None)


async def test_a_channel_that_there_is_not_is_left_out(way: Way) -> None:
    send = {"id": "rcs", "tipo": "enviar", "canal": "rcs", "rcs": {"conteudo": {"text": "Hi"}}, "proximo": "end"}
    execution = await way.begin(await way.journey(send, END))
    await way.work()
    assert await way.trail(execution) == [("rcs", "pulado", "numero_indisponivel"), ("end", "fim", None)]


async def test_a_text_that_becomes_too_long_is_left_out(way: Way) -> None:
    send = sms("hello", "end", "{{1}}{{1}}") | {"variaveis": {"1": {"de": "fixo", "valor": "a" * 1_024}}}
    execution = await way.begin(await way.journey(send, END))
    await way.work()
    assert await way.trail(execution) == [("hello", "pulado", "conteudo_invalido"), ("end", "fim", None)]


async def test_who_did_not_agree_gets_nothing_where_the_organization_wants_that(way: Way) -> None:
    journey = await way.journey(sms("hello", "end"), END)
    await way.db.execute("update organizations set require_granted_for_marketing = true")
    unknown = await way.begin(journey)
    granted = await way.begin(journey, await way.person(opt_in_status="granted"))
    await way.work()
    assert await way.trail(unknown) == [("hello", "pulado", "conteudo_invalido"), ("end", "fim", None)]
    assert await way.trail(granted) == [("hello", "enviado", None), ("end", "fim", None)]


async def test_a_send_waits_for_the_later_end_of_both_silences(way: Way) -> None:
    journey = await way.journey(sms("hello", "end"), END, silencio={"inicio": "11:00", "fim": "13:00"})
    await way.db.execute(
        "update organizations set quiet_start = '08:30', quiet_end = '09:30'"  # until 12:30 UTC
    )
    execution = await way.begin(journey)
    await way.work()
    waiting = await way.read(execution.key)
    assert (waiting.awaited, waiting.awaited_until) == (Awaited.SILENCE_END, BORN + HOUR)
    await way.work(HOUR)
    assert (await way.read(execution.key)).status is ExecutionStatus.CONCLUIDA


async def test_a_cap_counts_the_messages_of_all_journeys_also_of_the_same_turn(way: Way) -> None:
    cap = {"mensagens": 2, "dias": 1}
    contact_id = await way.person()
    began = [
        await way.begin(await way.journey(sms("hello", "end"), END, teto_de_frequencia=cap), contact_id)
        for _ in range(3)
    ]
    await way.work()
    results = [(await way.trail(each))[0] for each in began]
    assert sorted(results) == [
        ("hello", "enviado", None), ("hello", "enviado", None), ("hello", "pulado", "teto_de_frequencia"),
    ]  # fmt: skip
    free = await way.begin(await way.journey(sms("hello", "end"), END), contact_id)
    capped = await way.begin(await way.journey(sms("hello", "end"), END, teto_de_frequencia=cap), contact_id)
    await way.work()
    assert (await way.trail(free))[0] == ("hello", "enviado", None)
    assert (await way.trail(capped))[0] == ("hello", "pulado", "teto_de_frequencia")
    await way.clock.advance(24 * 3_600)
    later = await way.begin(await way.journey(sms("hello", "end"), END, teto_de_frequencia=cap), contact_id)
    await way.work()
    assert (await way.trail(later))[0] == ("hello", "enviado", None)


async def test_what_failed_before_it_left_does_not_count_toward_a_cap(way: Way) -> None:
    cap = {"mensagens": 1, "dias": 1}
    contact_id = await way.person()
    await way.begin(await way.journey(sms("hello", "end"), END), contact_id)
    await way.work()
    await way.db.execute("update messages set status = 'failed', failed_at = updated_at, outcome_certain = true")
    execution = await way.begin(await way.journey(sms("hello", "end"), END, teto_de_frequencia=cap), contact_id)
    await way.work()
    assert (await way.trail(execution))[0] == ("hello", "enviado", None)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("update contacts set opt_in_status = 'denied'", EndReason.OPTED_OUT),
        ("delete from contacts", EndReason.CONTACT_DELETED),
    ],
)
async def test_whoever_refuses_or_is_gone_goes_no_further_and_what_is_queued_is_withdrawn(
    way: Way, change: str, reason: EndReason
) -> None:
    execution = await way.begin(await way.journey(sms("hello", "wait"), wait("wait", "end"), END))
    await way.work()
    await way.db.execute(change)
    await way.work(HOUR)
    over = await way.read(execution.key)
    assert (over.status, over.motivo) == (ExecutionStatus.CANCELADA, reason)
    assert await way.trail(execution) == [("hello", "enviado", None)]
    assert await way.db.fetchval("select count(*) from dispatch") == 0
    assert await way.db.fetchval("select failure_code from messages") == "withdrawn"
    assert (await ledger.get(way.db, way.organization.id, ENV)).held_coins == 0  # type: ignore[union-attr]


async def test_what_the_wallet_does_not_cover_waits_for_credit(way: Way) -> None:
    journey = await way.journey(sms("hello", "end"), END)
    began = [await way.begin(journey) for _ in range(2)]
    await way.db.execute("update wallets set balance_coins = 0")
    await way.work()
    assert [(await way.read(each.key)).awaited for each in began] == [Awaited.RESUME] * 2
    assert way.accepted == []
    await way.db.execute("update wallets set balance_coins = 1000000")
    await way.work(HOUR)
    assert way.accepted == []
    await JourneyPauses(way.db, clock=way.clock, paused=way.paused.append, resumed=lambda: None).look()
    await way.work()
    assert [(await way.read(each.key)).status for each in began] == [ExecutionStatus.CONCLUIDA] * 2
    assert len(way.accepted) == 2


async def test_what_is_due_in_a_pause_waits_for_its_end(way: Way) -> None:
    journey = await way.journey(wait("wait", "end"), END)
    execution = await way.begin(journey)
    await way.work()
    await way.db.execute("update journeys set status = 'pausada'")
    await way.work(2 * HOUR)
    held = await way.read(execution.key)
    assert (held.awaited, held.wake_at, held.step_id) == (Awaited.RESUME, None, "wait")
    await way.db.execute("update journeys set status = 'ativa'")
    await way.work()
    assert (await way.read(execution.key)).motivo is EndReason.FINISHED


async def test_executions_of_a_suspended_organization_stand_still_and_go_on_after(way: Way) -> None:
    journey = await way.journey(wait("wait", "hello"), sms("hello", "end"), END)
    execution, tried = await way.begin(journey), await way.tried(journey)
    await way.work()
    await way.suspend()
    await way.work(HOUR)
    assert not any(await way.turns.waiting())
    assert {(await way.read(each.key)).step_id for each in (execution, tried)} == {"wait"}
    await way.suspend(lifted=True)
    assert any(await way.turns.waiting())
    await way.work()
    assert [(await way.read(each.key)).motivo for each in (execution, tried)] == [EndReason.FINISHED] * 2
    assert len(way.accepted) == 2


async def test_a_test_of_a_version_whose_place_is_taken_comes_to_its_end(way: Way) -> None:
    journey = await way.journey(wait("wait", "end"), END)
    execution = await way.begin(journey)
    await way.work(HOUR - SECOND / 2)
    tried = await way.tried(journey)
    await way.db.execute("update journeys set entradas_encerradas = true")
    await way.work(SECOND / 2)
    await way.work()
    superseded = SupersededVersions(way.db, clock=way.clock)
    await superseded.look()
    assert (await way.read(execution.key)).motivo is EndReason.FINISHED
    assert (await way.read(tried.key)).status is ExecutionStatus.ATIVA
    assert await way.db.fetchval("select status from journeys") == "ativa"
    await way.work(SECOND)
    assert (await way.read(tried.key)).motivo is EndReason.FINISHED
    await superseded.look()
    assert await way.db.fetchval("select status from journeys") == "arquivada"


async def test_executions_of_an_archived_journey_are_over_when_they_are_due(way: Way) -> None:
    journey = await way.journey(sms("hello", "wait"), wait("wait", "end"), END)
    execution = await way.begin(journey)
    await way.work()
    await way.db.execute("update journeys set status = $1", JourneyStatus.ARQUIVADA)
    await way.work(HOUR)
    assert (await way.read(execution.key)).motivo is EndReason.JOURNEY_ARCHIVED
    assert await way.db.fetchval("select count(*) from dispatch") == 0


# Failures of our own -------------------------------------------------------------------------------------------------


async def test_an_execution_whose_step_fails_is_tried_again_alone_and_given_up_at_the_fifth_time(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    journey = await way.journey(sms("hello", "end"), END)
    poisoned = await way.begin(journey)
    others = [await way.begin(journey) for _ in range(2)]
    make, tries = way.step_messages.make, []

    async def failing(standing: Any, decision: Any) -> Any:
        if standing.execution.id == poisoned.id:
            tries.append(way.clock.now())
            raise ZeroDivisionError
        return await make(standing, decision)

    monkeypatch.setattr(way.step_messages, "make", failing)
    await way.work()
    assert [(await way.read(each.key)).status for each in others] == [ExecutionStatus.CONCLUIDA] * 2
    for seconds in (5, 30, 120, 600):
        await way.work(timedelta(seconds=seconds - 1))
        await way.work(SECOND)
    assert [(at - tries[0]).total_seconds() for at in tries] == [0, 5, 35, 155, 755]
    over = await way.read(poisoned.key)
    assert (over.status, over.motivo) == (ExecutionStatus.ERRO, EndReason.INTERNAL_FAILURE)
    assert await way.trail(poisoned) == [("hello", "erro", None)]


async def test_one_that_the_database_refuses_does_not_keep_the_others_from_going_on(way: Way) -> None:
    journey = await way.journey(sms("hello", "end"), END)
    poisoned, other = await way.begin(journey), await way.begin(journey)
    # It was passed, say those who counted: nothing that it does may be done once more.
    await way.db.execute(
        "insert into execution_steps (organization_id, execution_id, step_id, env, tipo, at, place, resultado)"
        " values ($1, $2, 'hello', 'test', 'enviar', now(), 0, 'enviado')",
        way.organization.id,
        poisoned.id,
    )
    await way.work()
    assert (await way.read(other.key)).status is ExecutionStatus.CONCLUIDA
    held = await way.read(poisoned.key)
    assert (held.failures, held.wake_at) == (1, BORN + timedelta(seconds=5))
    assert [new.contact_id for new in way.accepted] == [other.contact_id]
    assert await way.db.fetchval("select count(*) from messages") == 1


async def test_a_commit_that_is_lost_has_done_nothing(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = await way.begin(await way.journey(sms("hello", "end"), END))
    save, losses = executions.save, [1]

    async def losing(connection: Any, changed: Any, passed: Any) -> None:
        await save(connection, changed, passed)
        if losses:
            losses.pop()
            raise ConnectionResetError

    monkeypatch.setattr(executions, "save", losing)
    with pytest.raises(Unavailable):
        await way.turns.take()
    assert await way.db.fetchval("select count(*) from messages") == 0
    assert way.accepted == []
    await way.work()
    assert (await way.read(execution.key)).status is ExecutionStatus.CONCLUIDA
    assert await way.db.fetchval("select count(*) from messages") == 1


async def test_neither_quiet_hours_nor_a_pause_hold_the_message_of_a_test(way: Way) -> None:
    journey = await way.journey(sms("hello", "end"), END)
    await way.begin(journey)
    test = await way.tried(journey)
    await way.work()
    usual, tried = sorted(way.accepted, key=lambda message: message.owner, reverse=True)
    assert (usual.owner, usual.obeys_quiet_hours) == (journey.id, True)
    assert (tried.owner, tried.obeys_quiet_hours) == (test.id, False)


async def test_a_draft_that_is_broken_during_its_test_ends_it_and_nothing_else(way: Way) -> None:
    draft = await way.journey(wait("wait", "end"), END, status=JourneyStatus.RASCUNHO)
    test, other = await way.tried(draft), await way.begin(await way.journey(END))
    await way.db.execute(
        """update journeys set passos = '[{"id": "wait", "tipo": "esperar"}]', revision = 2 where id = $1""", draft.id
    )
    await way.turns.take()
    over = await way.read(test.key)
    assert (over.status, over.motivo) == (ExecutionStatus.ERRO, EndReason.INTERNAL_FAILURE)
    assert (await way.read(other.key)).status is ExecutionStatus.CONCLUIDA
