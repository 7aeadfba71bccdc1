"""Journeys are activated, paused and archived, and a version takes the place of those before it (C9.11, C9.12)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.http.conftest import Answer, Api
from tests.http.template_drafts import create, set_status
from tests.waiting import until_locked_out

from recado.domain.journeys.journey import AutomaticPause, Hindrance
from recado.domain.messages.changes import Change, JourneyMoved, WithdrawalsLeft
from recado.storage.dispatch import withdrawals
from recado.storage.journeys import states

JOURNEYS = "/v2/journeys"
KEPT = "?permitirProblemas=true"
END = {"id": "end", "tipo": "fim"}
LACKING = {"passos": [{"id": "end", "tipo": "esperar"}]}


def journey(**fields: Any) -> dict[str, Any]:
    return {"name": "Welcome", "gatilho": {"tipo": "api"}, "inicio": "end", "passos": [END], **fields}


async def made(api: Api, **fields: Any) -> str:
    answer = await api.post(JOURNEYS + KEPT, journey(**fields))
    assert answer.status == 201, answer.body
    return str(answer.body["id"])


async def do(api: Api, what: str, found: str, **how: Any) -> Answer:
    return await api.post(f"{JOURNEYS}/{found}/{what}", **how)


async def put(api: Api, found: str, **fields: Any) -> Answer:
    return await api.call("PUT", f"{JOURNEYS}/{found}{KEPT}", journey(**fields))


async def shown(api: Api, found: str) -> Any:
    return (await api.get(f"{JOURNEYS}/{found}")).body


async def in_state(api: Api, *moves: str) -> str:
    """A journey after these moves."""
    found = await made(api)
    for what in moves:
        assert (await do(api, what, found)).status == 200
    return found


async def audited(api: Api, found: str) -> list[str]:
    entries = (await api.get(f"/v2/audit?targetId={found}")).body["items"]
    return [entry["action"] for entry in reversed(entries)]


async def test_a_draft_without_problems_is_activated(api: Api) -> None:
    found = await made(api)
    answer = await do(api, "activate", found, headers={"If-Match": '"1"'})
    running = answer.body
    assert (answer.status, answer.etag, running["status"], running["problemas"]) == (200, '"2"', "ativa", [])
    assert running["ativadaEm"] == running["updatedAt"]
    assert running["entradasEncerradas"] is False
    assert not {"pausadaEm", "pausadaPor", "arquivadaEm", "substituidaPor"} & set(running)
    assert await shown(api, found) == running
    api.clock.shift(60)
    again = await do(api, "activate", found)
    assert (again.body, again.etag) == (running, '"2"')
    assert await audited(api, found) == ["journey.activate"]
    (item,) = (await api.get(f"{JOURNEYS}?status=ativa")).body["items"]
    assert (item["ativadaEm"], item["entradasEncerradas"]) == (running["ativadaEm"], False)


async def test_one_that_calls_a_webhook_is_activated(api: Api) -> None:
    hook = (await api.post("/webhooks", {"url": "https://hooks.example.com/", "events": ["message.sent"]})).body
    call = {"id": "call", "tipo": "webhook", "webhookId": hook["id"], "proximo": "end"}
    found = await made(api, inicio="call", passos=[call, END])
    answer = await do(api, "activate", found)
    assert (answer.status, answer.body["status"]) == (200, "ativa")


async def test_one_with_problems_is_not_activated(api: Api) -> None:
    found = await made(api, **LACKING)
    refused = await do(api, "activate", found)
    assert (refused.status, refused.code) == (422, "JORNADA_COM_PROBLEMAS")
    before = await shown(api, found)
    assert refused.body["meta"]["problemas"] == before["problemas"]
    assert refused.body["errors"][0]["path"] == "/passos/0"
    assert (before["status"], before["revisao"]) == ("rascunho", 1)
    assert await audited(api, found) == []


async def test_a_paused_one_goes_on(api: Api) -> None:
    found = await in_state(api, "activate")
    began = (await shown(api, found))["ativadaEm"]
    api.clock.shift(60)
    answer = await do(api, "pause", found)
    paused = answer.body
    assert (answer.status, answer.etag, paused["status"], paused["ativadaEm"]) == (200, '"3"', "pausada", began)
    assert paused["pausadaEm"] == paused["updatedAt"] > began
    assert (await do(api, "pause", found)).body == paused
    api.clock.shift(60)
    running = (await do(api, "activate", found)).body
    assert (running["status"], running["ativadaEm"], running["revisao"]) == ("ativa", began, 4)
    assert not {"pausadaEm", "pausadaPor"} & set(running)
    assert await audited(api, found) == ["journey.activate", "journey.pause", "journey.activate"]


async def test_a_paused_one_with_problems_does_not_go_on(api: Api) -> None:
    template = await create(api, components=[{"type": "BODY", "payload": {"text": "Hello."}}])
    await set_status(api, template, "approved")
    number = {"numberId": api.organizations[0].number.id}
    chat = {"id": "end", "tipo": "enviar", "canal": "chatapp", "templateId": template["id"], **number, "proximo": "fim"}
    found = await made(api, passos=[chat, {"id": "fim", "tipo": "fim"}])
    for what in ("activate", "pause"):
        assert (await do(api, what, found)).status == 200
    await set_status(api, template, "disabled")
    refused = await do(api, "activate", found)
    assert (refused.code, refused.body["errors"][0]["code"]) == ("JORNADA_COM_PROBLEMAS", "MODELO_NAO_APROVADO")
    assert (await shown(api, found))["status"] == "pausada"


async def test_what_paused_it_is_shown_until_it_goes_on(api: Api) -> None:
    found = await in_state(api, "activate")
    at = api.clock.now() + timedelta(seconds=5)
    key = (api.organizations[0].organization.id, "test", found)
    cause = AutomaticPause(Hindrance.TEMPLATE_UNAVAILABLE, "send", at, "welcome")
    assert await states.pause_itself(api.database, key, cause)
    paused = await shown(api, found)
    assert (paused["status"], paused["revisao"]) == ("pausada", 3)
    told = {"motivo": "modelo_indisponivel", "passo": "send", "em": paused["pausadaEm"], "rotulo": "welcome"}
    assert paused["pausadaPor"] == told
    (item,) = (await api.get(f"{JOURNEYS}?status=pausada")).body["items"]
    assert item["pausadaPor"] == told
    assert "pausadaPor" not in (await do(api, "activate", found)).body


async def test_one_that_paused_itself_is_paused_by_a_person_and_then_waits_for_one(api: Api) -> None:
    found = await in_state(api, "activate")
    at = api.clock.now() + timedelta(seconds=5)
    key = (api.organizations[0].organization.id, "test", found)
    assert await states.pause_itself(api.database, key, AutomaticPause(Hindrance.NO_BALANCE, "send", at, lacked=1))
    since = (await shown(api, found))["pausadaEm"]
    api.clock.shift(60)
    api.changes.clear()
    answer = await do(api, "pause", found, headers={"If-Match": '"3"'})
    paused = answer.body
    assert (answer.status, answer.etag, paused["status"], paused["pausadaEm"]) == (200, '"4"', "pausada", since)
    assert "pausadaPor" not in paused
    (moved,) = api.changes
    assert isinstance(moved, JourneyMoved)
    assert moved.pauses.paused_at == at
    assert await states.go_on_credited(api.database, [key], api.clock.now()) == []
    assert (await do(api, "pause", found)).body == paused
    assert await audited(api, found) == ["journey.activate", "journey.pause"]
    assert (await do(api, "activate", found)).body["status"] == "ativa"


@pytest.mark.parametrize("moves", [(), ("activate",), ("activate", "pause")])
async def test_one_in_any_state_is_archived(api: Api, moves: tuple[str, ...]) -> None:
    found = await in_state(api, *moves)
    gone = (await do(api, "archive", found)).body
    assert (gone["status"], gone["arquivadaEm"]) == ("arquivada", gone["updatedAt"])
    assert (await do(api, "archive", found)).body == gone
    for what in ("activate", "pause"):
        refused = await do(api, what, found)
        assert (refused.status, refused.code, refused.body["meta"]) == (
            409, "JORNADA_ARQUIVADA", {"status": "arquivada"},
        )  # fmt: skip
    assert (await put(api, found)).code == "JORNADA_ARQUIVADA"
    assert await shown(api, found) == gone


async def test_a_draft_has_nothing_to_pause(api: Api) -> None:
    found = await made(api)
    refused = await do(api, "pause", found)
    assert (refused.status, refused.code, refused.body["meta"]) == (409, "JORNADA_NAO_ATIVA", {"status": "rascunho"})


@pytest.mark.parametrize(("moves", "status"), [(("activate",), "ativa"), (("activate", "pause"), "pausada")])
async def test_one_that_was_activated_keeps_its_definition(api: Api, moves: tuple[str, ...], status: str) -> None:
    found = await in_state(api, *moves)
    before = await shown(api, found)
    refused = await put(api, found, name="Another")
    assert (refused.status, refused.code, refused.body["meta"]) == (
        409, "JORNADA_NAO_E_RASCUNHO", {"status": status},
    )  # fmt: skip
    assert await shown(api, found) == before


async def test_only_the_version_that_the_caller_knows_is_moved(api: Api) -> None:
    for moves, what in (((), "activate"), (("activate",), "pause"), (("activate",), "activate")):
        found = await in_state(api, *moves)
        before = await shown(api, found)
        refused = await do(api, what, found, headers={"If-Match": '"9"'})
        assert (refused.status, refused.code) == (412, "VERSION_MISMATCH")
        assert refused.body["meta"]["currentETag"] == f'"{before["revisao"]}"'
        assert await shown(api, found) == before


@pytest.mark.parametrize("moves", [("activate",), ("activate", "pause")])
async def test_copies_and_versions_of_one_that_runs_are_drafts(api: Api, moves: tuple[str, ...]) -> None:
    found = await in_state(api, *moves)
    copy, version = (await do(api, "duplicate", found)).body, (await do(api, "versao", found)).body
    assert (copy["versao"], version["versao"], version["versaoDe"]) == (1, 2, found)
    for each in (copy, version):
        assert (each["status"], each["revisao"], each["entradasEncerradas"]) == ("rascunho", 1, False)
        assert not {"ativadaEm", "pausadaEm", "pausadaPor"} & set(each)
    again = await do(api, "versao", found)
    assert (again.code, again.body["meta"]) == ("VERSAO_EM_RASCUNHO", {"journeyId": version["id"]})


@pytest.mark.parametrize("moves", [("activate",), ("activate", "pause")])
async def test_a_version_takes_the_place_of_one_that_runs(api: Api, moves: tuple[str, ...]) -> None:
    first = await in_state(api, *moves)
    other = await in_state(api, "activate")  # of another chain
    second = (await do(api, "versao", first)).body["id"]
    before = await shown(api, first)
    assert (await do(api, "activate", second)).body["status"] == "ativa"
    after = await shown(api, first)
    changed = {"substituidaPor": second, "entradasEncerradas": True, "revisao": before["revisao"] + 1}
    assert after == {**before, **changed, "updatedAt": after["updatedAt"]}
    assert (await shown(api, other))["entradasEncerradas"] is False
    entry = (await api.get(f"/v2/audit?action=journey.activate&targetId={second}")).body["items"][0]
    assert entry["details"] == {"superseded": [first]}
    third = (await do(api, "versao", first)).body["id"]
    await do(api, "activate", third)
    assert [(await shown(api, each))["substituidaPor"] for each in (first, second)] == [third, third]
    copy = (await do(api, "duplicate", first)).body
    assert (copy["entradasEncerradas"], "substituidaPor" in copy) == (False, False)


async def test_a_superseded_one_goes_on_and_takes_the_place_of_none(api: Api) -> None:
    first = await in_state(api, "activate", "pause")
    second = (await do(api, "versao", first)).body["id"]
    await do(api, "activate", second)
    running = await shown(api, second)
    resumed = (await do(api, "activate", first)).body
    assert (resumed["status"], resumed["substituidaPor"], resumed["entradasEncerradas"]) == ("ativa", second, True)
    assert await shown(api, second) == running
    await do(api, "archive", first)
    third = (await do(api, "versao", first)).body["id"]
    await do(api, "activate", third)
    assert (await shown(api, first))["substituidaPor"] == second  # one that is archived has nothing to give up


async def test_an_archived_version_leaves_the_one_that_runs_as_it_is(api: Api) -> None:
    first = await in_state(api, "activate")
    running = await shown(api, first)
    second = (await do(api, "versao", first)).body["id"]
    await do(api, "archive", second)
    assert await shown(api, first) == running


async def test_of_many_activations_one_counts(api: Api) -> None:
    first = await in_state(api, "activate")
    second = (await do(api, "versao", first)).body["id"]
    answers = await asyncio.gather(*(do(api, "activate", second) for _ in range(6)))
    assert {answer.status for answer in answers} == {200}
    assert {answer.etag for answer in answers} == {'"2"'}
    assert await audited(api, second) == ["journey.activate"]
    assert (await shown(api, first))["revisao"] == 3


async def test_versions_that_are_moved_at_once_wait_for_each_other(api: Api) -> None:
    """The chain is locked in one order, whichever of its journeys is activated."""
    first = await in_state(api, "activate", "pause")
    for _ in range(5):
        second = (await do(api, "versao", first)).body["id"]
        answers = await asyncio.gather(
            do(api, "activate", second), do(api, "activate", first), do(api, "pause", first), do(api, "activate", first)
        )
        assert [answer.status for answer in answers] == [200] * 4
        old = await shown(api, first)
        assert (old["substituidaPor"], old["entradasEncerradas"]) == (second, True)
        assert (await shown(api, second))["entradasEncerradas"] is False
        await do(api, "archive", second)


@pytest.mark.parametrize("edited_first", [True, False])
async def test_an_activation_and_a_replacement_follow_each_other(api: Api, edited_first: bool) -> None:
    found = await made(api)
    moves = [lambda: put(api, found, **LACKING), lambda: do(api, "activate", found)]
    tasks = []
    async with api.database.transaction() as connection:
        await connection.execute("select from journeys where id = $1 for update", found)
        for count, move in enumerate(moves if edited_first else reversed(moves), 1):
            tasks.append(asyncio.ensure_future(move()))
            await until_locked_out(api.database, count)
    answers = await asyncio.gather(*tasks)
    after = await shown(api, found)
    if edited_first:
        assert [answer.code if answer.status != 200 else 200 for answer in answers] == [200, "JORNADA_COM_PROBLEMAS"]
        assert (after["status"], len(after["problemas"])) == ("rascunho", 2)
    else:
        assert [answer.code if answer.status != 200 else 200 for answer in answers] == [200, "JORNADA_NAO_E_RASCUNHO"]
        assert (after["status"], after["problemas"]) == ("ativa", [])


async def test_what_goes_while_a_journey_is_activated_is_missed(api: Api) -> None:
    clients = (await api.post("/v2/lists", {"name": "Clients"})).body["id"]
    found = await made(api, gatilho={"tipo": "lista", "listId": clients})
    async with api.database.transaction() as connection:
        await connection.execute("delete from static_lists where id = $1", clients)
        activating = asyncio.ensure_future(do(api, "activate", found))
        await until_locked_out(api.database, 1)
    refused = await activating
    assert (refused.code, refused.body["errors"][0]["code"]) == ("JORNADA_COM_PROBLEMAS", "GATILHO_INEXISTENTE")
    assert (await shown(api, found))["status"] == "rascunho"


@pytest.mark.parametrize("moves", [("activate",), ("activate", "pause")])
async def test_what_one_that_was_activated_uses_is_not_deleted(api: Api, moves: tuple[str, ...]) -> None:
    clients = (await api.post("/v2/lists", {"name": "Clients"})).body["id"]
    found = await made(api, gatilho={"tipo": "lista", "listId": clients})
    for what in moves:
        await do(api, what, found)
    refused = await api.delete(f"/v2/lists/{clients}")
    assert (refused.status, refused.code, refused.body["meta"]) == (409, "RESOURCE_IN_USE", {"journeyId": found})
    await do(api, "archive", found)
    assert (await api.delete(f"/v2/lists/{clients}")).status == 204


async def test_a_repeat_under_a_key_answers_what_was(api: Api) -> None:
    found = await made(api)
    headers = {"Idempotency-Key": "once"}
    first = await do(api, "activate", found, headers=headers)
    await do(api, "pause", found)
    second = await do(api, "activate", found, headers=headers)
    assert (second.body, second.headers["Idempotency-Replayed"]) == (first.body, "true")
    assert (await shown(api, found))["status"] == "pausada"


async def test_who_lets_messages_leave_is_told_of_each_move(api: Api) -> None:
    found = await in_state(api, "activate")
    organization_id = api.organizations[0].organization.id
    api.changes.clear()

    async def told(what: str) -> list[Change]:
        assert (await do(api, what, found)).status == 200
        changes, api.changes[:] = [*api.changes], []
        return changes

    (paused,) = await told("pause")
    assert isinstance(paused, JourneyMoved)
    assert (paused.pauses.owner, paused.pauses.past) == (found, ())
    assert paused.pauses.paused_at is not None
    (resumed,) = await told("activate")
    assert isinstance(resumed, JourneyMoved)
    assert (resumed.pauses.paused_at, resumed.pauses.past[0]) == (None, paused.pauses.paused_at)
    assert resumed.pauses.revision > paused.pauses.revision
    left, archived = await told("archive")
    assert left == WithdrawalsLeft((withdrawals.of_archived(organization_id, "test", found),))
    assert await withdrawals.noted(api.database) == [*left.withdrawals]
    assert isinstance(archived, JourneyMoved)
    assert (archived.pauses.paused_at, archived.pauses.past) == (None, ())
    assert await told("archive") == []
