"""Journeys over HTTP: drafts with their problems, versions, copies and the archive (C9)."""

import asyncio
from typing import Any

import pytest
from tests.http.template_drafts import create, set_status

from recado.domain.journeys.journey import MAX_JOURNEYS

JOURNEYS = "/v2/journeys"
NOWHERE = "?permitirProblemas=true"
END = {"id": "end", "tipo": "fim"}


def journey(**fields: Any) -> dict[str, Any]:
    """One that has no problem."""
    wait = {"id": "wait", "tipo": "esperar", "minutos": 60, "proximo": "end"}
    return {"name": "Welcome", "gatilho": {"tipo": "api"}, "inicio": "wait", "passos": [wait, END], **fields}


async def made(api: Any, **fields: Any) -> Any:
    answer = await api.post(JOURNEYS + NOWHERE, journey(**fields))
    assert answer.status == 201, answer.body
    return answer.body


async def put(api: Any, found: Any, **fields: Any) -> Any:
    query = fields.pop("query", "")
    headers = fields.pop("headers", None)
    return await api.call("PUT", f"{JOURNEYS}/{found['id']}{query}", journey(**fields), headers=headers)


async def archived(api: Any, found: Any) -> Any:
    answer = await api.post(f"{JOURNEYS}/{found['id']}/archive")
    assert answer.status == 200, answer.body
    return answer.body


async def problems(api: Any, found: Any) -> list[str]:
    body = (await api.get(f"{JOURNEYS}/{found['id']}")).body
    return [problem.partition(": ")[0] for problem in body["problemas"]]


async def test_a_draft_is_made_and_read(api: Any) -> None:
    answer = await api.post(JOURNEYS, journey(descricao="For new ones", meta={"evento": "order"}))
    found = answer.body
    assert (answer.status, answer.etag) == (201, '"1"')
    assert found["id"].startswith("jrn_")
    assert found == {
        "id": found["id"],
        "organizationId": api.organizations[0].organization.id,
        "env": "test",
        "name": "Welcome",
        "descricao": "For new ones",
        "status": "rascunho",
        "gatilho": {"tipo": "api"},
        "inicio": "wait",
        "passos": journey()["passos"],
        "reentrada": "nunca",
        "intervaloReentradaHoras": 24,
        "meta": {"evento": "order"},
        "fusoHorario": "America/Sao_Paulo",
        "execucoes": {"ativa": 0, "concluida": 0, "cancelada": 0, "erro": 0},
        "versao": 1,
        "entradasEncerradas": False,
        "criadaPorId": api.organizations[0].keys["test"][0].id,
        "revisao": 1,
        "problemas": [],
        "createdAt": found["createdAt"],
        "updatedAt": found["createdAt"],
    }
    read = await api.get(f"{JOURNEYS}/{found['id']}")
    assert (read.body, read.etag) == (found, '"1"')


async def test_what_a_step_says_comes_back_as_it_was_written(api: Any) -> None:
    step = {
        "id": "send", "tipo": "enviar", "canal": "rcs", "templateId": "tpl_x", "numberId": "num_x", "smsRoute": "otp",
        "texto": "Hello", "proximo": "end", "minutos": -1, "sobre": "x", "sinal": "lido", "evento": "order",
        "janelaMinutos": 0, "sim": "end", "nao": "end", "webhookId": "wbh_x", "seFalhar": "end", "dias": [1, 9],
        "hora": "9h", "campo": "name", "operador": "igual", "valor": 1.5,
        "ramos": [{"nome": "A", "peso": 1, "proximo": "end"}, {}],
        "rcs": {
            "rota": "easy_rcs", "fallback": {"text": "Hello"},
            "conteudo": {
                "text": "Hello",
                "card": {
                    "title": "News", "description": "Much", "mediaUrl": "https://example.org/", "orientation": "v",
                    "suggestions": [{"type": "reply", "text": "Yes", "value": "1"}],
                },
            },
        },
        "variaveis": {"{{ 1 }}": {"de": "contato", "campo": "name"}, "2": {"de": "fixo", "valor": "b", "padrao": "c"}},
    }  # fmt: skip
    whole = {
        "gatilho": {"tipo": "segmento", "listId": "lst_x", "segmentId": "seg_x", "nome": "order"},
        "silencio": {"inicio": "21:00", "fim": "08:00"},
        "tetoDeFrequencia": {"mensagens": 1, "dias": 7},
        "reentrada": "apos_concluir",
        "intervaloReentradaHoras": 48,
        "fusoHorario": "Europe/Lisbon",
    }
    found = await made(api, passos=[step, END], inicio="send", **whole)
    step["variaveis"]["1"] = step["variaveis"].pop("{{ 1 }}")  # type: ignore[attr-defined]
    assert found["passos"] == [step, END]
    assert {name: found[name] for name in whole} == whole
    assert (await api.get(f"{JOURNEYS}/{found['id']}")).body == found


async def test_a_list_shows_what_its_journeys_come_to(api: Any) -> None:
    clients = (await api.post("/v2/lists", {"name": "Clients"})).body
    filters = [{"field": "tag", "operator": "is", "value": "vip"}]
    segment = (await api.post("/v2/segments", {"name": "Recent", "filters": filters})).body
    sends = [
        {"id": "a", "tipo": "enviar", "canal": "sms", "texto": "Hello", "proximo": "b"},
        {"id": "b", "tipo": "condicao", "sobre": "a", "sinal": "entregue", "sim": "end", "nao": "c"},
        {"id": "c", "tipo": "enviar", "canal": "email", "proximo": "d"},
        {"id": "d", "tipo": "enviar", "canal": "sms", "texto": "Bye", "proximo": "end"},
        END,
    ]
    first = await made(api, gatilho={"tipo": "lista", "listId": clients["id"]}, passos=sends, inicio="a")
    both = {"segmentId": segment["id"], "listId": clients["id"]}  # of which it begins with one
    second = await made(api, gatilho={"tipo": "segmento", **both}, meta={"evento": "order"})
    gone = await made(api, gatilho={"tipo": "lista", "listId": "lst_" + "0" * 21})
    await archived(api, gone)
    page = (await api.get(JOURNEYS)).body
    assert page["total"] == 3
    third, two, one = page["items"]
    assert [one["id"], two["id"], third["id"]] == [first["id"], second["id"], gone["id"]]
    assert (one["canais"], one["fluxo"]) == (["sms", "email"], ["enviar", "condicao", "fim", "enviar", "enviar"])
    assert (one["lista"], "segmento" in one, "metaEvento" in one) == ({"nome": "Clients", "tamanho": 0}, False, False)
    assert (two["segmento"], "lista" in two, two["metaEvento"]) == ({"nome": "Recent"}, False, "order")
    assert (third["status"], "lista" in third) == ("arquivada", False)
    shared = set(first) - {"passos", "problemas"}
    assert {name: one[name] for name in shared} == {name: first[name] for name in shared}
    assert not any("passos" in item or "problemas" in item for item in page["items"])
    drafts = (await api.get(f"{JOURNEYS}?status=rascunho&limit=1&skip=1")).body
    assert ([item["id"] for item in drafts["items"]], drafts["total"]) == ([first["id"]], 2)
    assert (await api.get(f"{JOURNEYS}?status=ativa")).body == {"items": [], "total": 0}
    assert (await api.get(f"{JOURNEYS}?limit=501")).code == "INVALID_PARAMETER"
    assert (await api.get(f"{JOURNEYS}?status=draft")).code == "INVALID_PARAMETER"


async def test_a_graph_with_problems_is_refused_unless_the_caller_says_so(api: Any) -> None:
    lacking = {"passos": [{"id": "wait", "tipo": "esperar"}], "gatilho": {}}
    refused = await api.post(JOURNEYS, journey(**lacking))
    assert (refused.status, refused.code) == (422, "JORNADA_COM_PROBLEMAS")
    told = refused.body["meta"]["problemas"]
    assert [problem.partition(": ")[0] for problem in told] == [
        "GATILHO_INCOMPLETO", "PASSO_SEM_SAIDA[wait]", "ESPERA_INVALIDA[wait]",
    ]  # fmt: skip
    assert [(each["path"], each["code"], each["message"]) for each in refused.body["errors"]] == [
        (path, problem.partition(": ")[0].partition("[")[0], problem)
        for path, problem in zip(["/gatilho", "/passos/0", "/passos/0"], told, strict=True)
    ]
    assert (await api.get(JOURNEYS)).body["total"] == 0
    kept = await made(api, **lacking)
    assert kept["problemas"] == told
    assert (await put(api, kept, **lacking)).body["meta"]["problemas"] == told
    assert (await put(api, kept, **lacking, query=NOWHERE)).body["problemas"] == told
    assert (await put(api, kept)).body["problemas"] == []


async def test_problems_are_those_of_the_moment(api: Any) -> None:
    """What a journey refers to changes without it: a template that is approved, a list that is deleted."""
    number_id = api.organizations[0].number.id
    template = await create(api)
    clients = (await api.post("/v2/lists", {"name": "Clients"})).body
    hook = (await api.post("/webhooks", {"url": "https://hooks.example.com/", "events": ["*"]})).body
    found = await made(
        api,
        gatilho={"tipo": "lista", "listId": clients["id"]},
        inicio="chat",
        passos=[
            {
                "id": "chat", "tipo": "enviar", "canal": "chatapp", "templateId": template["id"],
                "numberId": number_id, "variaveis": {"1": {"de": "contato", "campo": "name"}}, "proximo": "call",
            },
            {"id": "call", "tipo": "webhook", "webhookId": hook["id"], "proximo": "end"},
            END,
        ],
    )  # fmt: skip
    assert await problems(api, found) == ["MODELO_NAO_APROVADO[chat]"]
    await set_status(api, template, "approved")
    assert await problems(api, found) == []
    body = {"type": "BODY", "payload": {"text": "Hello {{1}}, {{2}}.", "example": ["Ana", "hi"]}}
    await api.patch(f"/v2/templates/{template['id']}", {"components": [body]})
    assert await problems(api, found) == ["MODELO_NAO_APROVADO[chat]", "VARIAVEL_SEM_MAPA[chat]"]
    await api.patch(f"/webhooks/{hook['id']}", {"status": "paused"})
    assert (await api.get(f"{JOURNEYS}/{found['id']}")).etag == '"1"'
    await archived(api, found)  # until then nobody deletes what it uses
    await api.delete(f"/v2/lists/{clients['id']}")
    await api.delete(f"/v2/templates/{template['id']}")
    assert await problems(api, found) == [
        "GATILHO_INEXISTENTE", "MODELO_INEXISTENTE[chat]", "WEBHOOK_INATIVO[call]",
    ]  # fmt: skip
    assert (await api.get(f"{JOURNEYS}/{found['id']}")).etag == '"2"'


async def test_what_another_organization_has_does_not_exist(api: Any) -> None:
    foreign = (await api.post("/v2/lists", {"name": "Theirs"}, organization=1)).body["id"]
    number = api.organizations[1].number.id
    chat = {"id": "wait", "tipo": "enviar", "canal": "chatapp", "numberId": number, "proximo": "end"}
    found = await made(api, gatilho={"tipo": "lista", "listId": foreign}, passos=[chat, END])
    assert await problems(api, found) == [
        "GATILHO_INEXISTENTE", "MODELO_AUSENTE[wait]", "NUMERO_INEXISTENTE[wait]",
    ]  # fmt: skip
    assert "lista" not in (await api.get(JOURNEYS)).body["items"][0]


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"name": " "}, "/name"),
        ({"name": "x" * 121}, "/name"),
        ({"descricao": "x" * 501}, "/descricao"),
        ({"fusoHorario": "Mars/Olympus"}, "/fusoHorario"),
        ({"gatilho": {"tipo": "radio"}}, "/gatilho/tipo"),
        ({"gatilho": []}, "/gatilho"),
        ({"inicio": None}, "/inicio"),
        ({"reentrada": "sempre"}, "/reentrada"),
        ({"intervaloReentradaHoras": 0}, "/intervaloReentradaHoras"),
        ({"intervaloReentradaHoras": 8_761}, "/intervaloReentradaHoras"),
        ({"tetoDeFrequencia": {"mensagens": 0, "dias": 1}}, "/tetoDeFrequencia/mensagens"),
        ({"tetoDeFrequencia": {"mensagens": 1, "dias": 91}}, "/tetoDeFrequencia/dias"),
        ({"tetoDeFrequencia": {"dias": 1}}, "/tetoDeFrequencia/mensagens"),
        ({"meta": {"evento": "x" * 101}}, "/meta/evento"),
        ({"silencio": {"inicio": 21}}, "/silencio/inicio"),
        ({"passos": [{"tipo": "fim"}]}, "/passos/0/id"),
        ({"passos": [{"id": "a b", "tipo": "fim"}]}, "/passos/0/id"),
        ({"passos": [{"id": "a" * 41, "tipo": "fim"}]}, "/passos/0/id"),
        ({"passos": [{"id": "", "tipo": "fim"}]}, "/passos/0/id"),
        ({"passos": [{"id": "a"}]}, "/passos/0/tipo"),
        ({"passos": [{"id": "a", "tipo": "voar"}]}, "/passos/0/tipo"),
        ({"passos": [{"id": f"s{place}", "tipo": "fim"} for place in range(51)]}, "/passos"),
        ({"passos": [{"id": "a", "tipo": "fim", "minutos": "5"}]}, "/passos/0/minutos"),
        ({"passos": [{"id": "a", "tipo": "fim", "smsRoute": "la_dedicada"}]}, "/passos/0/smsRoute"),
        ({"passos": [{"id": "a", "tipo": "fim", "dias": [True]}]}, "/passos/0/dias/0"),
        ({"passos": [{"id": "a", "tipo": "fim", "texto": "x" * 4_001}]}, "/passos/0/texto"),
        ({"passos": [{"id": "a", "tipo": "fim", "variaveis": {"a b": {}}}]}, "/passos/0/variaveis"),
        ({"passos": [{"id": "a", "tipo": "fim", "variaveis": {"1": "name"}}]}, "/passos/0/variaveis/1"),
        ({"passos": [{"id": "a", "tipo": "fim", "ramos": [{"peso": 0.5}]}]}, "/passos/0/ramos/0/peso"),
    ],
)
async def test_what_is_of_wrong_types_is_refused_in_any_case(api: Any, fields: dict[str, Any], pointer: str) -> None:
    refused = await api.post(JOURNEYS + NOWHERE, journey(**fields))
    assert (refused.status, refused.code) == (422, "VALIDATION_ERROR")
    assert [error["path"] for error in refused.body["errors"]] == [pointer]


async def test_a_draft_is_replaced_as_a_whole(api: Any) -> None:
    found = await made(api, descricao="Old", meta={"evento": "order"}, fusoHorario="Europe/Lisbon")
    answer = await put(api, found, name="New", inicio="end", passos=[END], headers={"If-Match": '"1"'})
    assert (answer.status, answer.etag, answer.body["revisao"]) == (200, '"2"', 2)
    assert (answer.body["name"], answer.body["inicio"], answer.body["passos"]) == ("New", "end", [END])
    assert answer.body["fusoHorario"] == "America/Sao_Paulo"
    assert not {"descricao", "meta"} & set(answer.body)
    (item,) = (await api.get(JOURNEYS)).body["items"]
    assert item["fluxo"] == ["fim"]
    same = await put(api, found, name="New", inicio="end", passos=[END])
    assert (same.body, same.etag) == (answer.body, '"2"')


async def test_only_the_version_that_the_caller_knows_is_changed(api: Any) -> None:
    found = await made(api)
    await put(api, found, name="Second")
    for method, path in (("PUT", ""), ("POST", "/duplicate"), ("POST", "/versao"), ("POST", "/archive")):
        body = journey() if method == "PUT" else None
        answer = await api.call(method, f"{JOURNEYS}/{found['id']}{path}", body, headers={"If-Match": '"1"'})
        assert (answer.status, answer.code, answer.body["meta"]["currentETag"]) == (412, "VERSION_MISMATCH", '"2"')
    assert (await api.get(JOURNEYS)).body["total"] == 1
    born = await api.post(JOURNEYS, journey(), headers={"If-Match": "*"})
    assert (born.status, born.code) == (412, "VERSION_MISMATCH")
    unchanged = await api.get(f"{JOURNEYS}/{found['id']}", headers={"If-None-Match": '"2"'})
    assert unchanged.status == 304


async def test_an_archived_draft_stays_as_it_is(api: Any) -> None:
    found = await made(api)
    gone = await archived(api, found)
    assert (gone["status"], gone["revisao"]) == ("arquivada", 2)
    assert gone["arquivadaEm"] == gone["updatedAt"]
    assert await archived(api, found) == gone
    refused = await put(api, found)
    assert (refused.status, refused.code) == (409, "JORNADA_ARQUIVADA")
    assert (await api.get(f"{JOURNEYS}/{found['id']}")).body == gone
    entries = (await api.get("/v2/audit?action=journey.archive")).body["items"]
    assert [entry["targetId"] for entry in entries] == [found["id"]]


async def test_a_copy_is_a_journey_of_its_own(api: Any) -> None:
    found = await made(api, passos=[{"id": "wait", "tipo": "esperar"}])
    copies = [(await api.post(f"{JOURNEYS}/{found['id']}/duplicate")) for _ in range(2)]
    assert [copy.status for copy in copies] == [201, 201]
    first, second = (copy.body for copy in copies)
    assert [first["name"], second["name"]] == ["Welcome (cópia)", "Welcome (cópia 2)"]
    own = {"id", "name", "createdAt", "updatedAt"}
    assert {name: first[name] for name in set(first) - own} == {name: found[name] for name in set(found) - own}
    await put(api, first, name="Mine")
    await archived(api, found)
    third = await api.post(f"{JOURNEYS}/{found['id']}/duplicate")
    assert (third.body["name"], third.body["status"], "arquivadaEm" in third.body) == (
        "Welcome (cópia)", "rascunho", False,
    )  # fmt: skip
    assert {third.body["versao"], second["versao"]} == {1}
    assert "versaoDe" not in third.body


async def test_copies_of_a_long_name_have_different_names(api: Any) -> None:
    found = await made(api, name="n" * 120)
    names = {(await api.post(f"{JOURNEYS}/{found['id']}/duplicate")).body["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(len(name) <= 120 for name in names)


async def test_the_next_version_is_made_of_an_archived_one(api: Any) -> None:
    found = await made(api)
    early = await api.post(f"{JOURNEYS}/{found['id']}/versao")
    assert (early.status, early.code, early.body["meta"]) == (409, "INVALID_STATE", {"status": "rascunho"})
    await archived(api, found)
    second = (await api.post(f"{JOURNEYS}/{found['id']}/versao")).body
    assert (second["versao"], second["versaoDe"], second["status"]) == (2, found["id"], "rascunho")
    assert (second["name"], second["passos"]) == (found["name"], found["passos"])
    again = await api.post(f"{JOURNEYS}/{found['id']}/versao")
    assert (again.status, again.code, again.body["meta"]) == (409, "VERSAO_EM_RASCUNHO", {"journeyId": second["id"]})
    await archived(api, second)
    third = (await api.post(f"{JOURNEYS}/{found['id']}/versao")).body
    assert (third["versao"], third["versaoDe"]) == (3, found["id"])
    await archived(api, third)
    fourth = (await api.post(f"{JOURNEYS}/{second['id']}/versao")).body
    assert (fourth["versao"], fourth["versaoDe"]) == (4, second["id"])


async def test_of_many_at_once_one_makes_the_next_version(api: Any) -> None:
    found = await made(api)
    await archived(api, found)
    answers = await asyncio.gather(*(api.post(f"{JOURNEYS}/{found['id']}/versao") for _ in range(8)))
    assert sorted(answer.status for answer in answers) == [201, *[409] * 7]


async def test_an_environment_holds_so_many_that_are_not_archived(api: Any) -> None:
    found = await made(api)
    gone = await made(api)
    await archived(api, gone)
    await api.database.execute(
        "insert into journeys select (jsonb_populate_record(j, jsonb_build_object("
        "'id', 'jrn_' || lpad(n::text, 21, '0'), 'chain_id', 'jrn_' || lpad(n::text, 21, '0')))).* "
        "from journeys j, generate_series(1, $2) n where j.id = $1",
        found["id"],
        MAX_JOURNEYS - 2,
    )
    copy = await api.post(f"{JOURNEYS}/{found['id']}/duplicate")
    assert copy.status == 201
    for path in (JOURNEYS, f"{JOURNEYS}/{found['id']}/duplicate", f"{JOURNEYS}/{gone['id']}/versao"):
        refused = await api.post(path, journey() if path == JOURNEYS else None)
        assert (refused.status, refused.code, refused.body["meta"]) == (
            409, "LIMITE_DE_JORNADAS", {"limit": MAX_JOURNEYS},
        )  # fmt: skip
    assert (await api.post(JOURNEYS, journey(), env="live")).status == 201
    await archived(api, copy.body)
    assert (await api.post(f"{JOURNEYS}/{gone['id']}/versao")).status == 201


async def test_a_repeat_under_a_key_makes_one_journey(api: Any) -> None:
    headers = {"Idempotency-Key": "once"}
    first, second = [await api.post(JOURNEYS, journey(), headers=headers) for _ in range(2)]
    assert (second.status, second.body, second.headers["Idempotency-Replayed"]) == (201, first.body, "true")
    assert (await api.get(JOURNEYS)).body["total"] == 1


async def test_large_ones_are_kept_and_read_in_turns(api: Any) -> None:
    """A body that another process reads, and more steps than are looked at in one turn."""
    sources = {f"n{number}": {"de": "fixo", "valor": "x"} for number in range(100)}
    steps = [
        {"id": f"s{place}", "tipo": "enviar", "canal": "sms", "texto": "x" * 3_000, "variaveis": sources,
         "proximo": f"s{place + 1}"}
        for place in range(49)
    ]  # fmt: skip
    found = await made(api, inicio="s0", passos=[*steps, {"id": "s49", "tipo": "fim"}])
    assert found["passos"] == [*steps, {"id": "s49", "tipo": "fim"}]
    assert [problem.partition(": ")[0] for problem in found["problemas"]] == [
        f"TEXTO_LONGO[s{place}]" for place in range(49)
    ]
    assert (await api.get(f"{JOURNEYS}/{found['id']}")).body == found
    twice = [{"id": "a", "tipo": "esperar"}] * 50
    told = (await made(api, inicio="a", passos=twice))["problemas"]
    assert len(told) == len(set(told))


async def test_unknown_fields_are_named(api: Any) -> None:
    answer = await api.post(JOURNEYS, journey(nome="Welcome", passos=[{**END, "proxmo": "a"}], inicio="end"))
    assert {warning["path"] for warning in answer.body["warnings"]} == {"/nome", "/passos/0/proxmo"}


async def test_a_value_of_another_type_is_another_value(api: Any) -> None:
    def asks(value: object) -> dict[str, Any]:
        asked = {"id": "ask", "tipo": "condicao", "campo": "attributes.vip", "operador": "igual", "valor": value}
        return {"inicio": "ask", "passos": [{**asked, "sim": "end", "nao": "end"}, END]}

    kept = await made(api, **asks(1))
    changed = (await put(api, kept, **asks(True))).body
    assert changed["passos"][0]["valor"] is True
    assert changed["revisao"] == kept["revisao"] + 1
    assert (await put(api, kept, **asks(True))).body["revisao"] == changed["revisao"]


@pytest.mark.parametrize("name", ["{{" + " " * 60_000 + "x", "{{" + "{" * 60_000, "x" * 60_000, "{{1}} {{1}}"])
async def test_the_name_of_a_variable_is_read_in_one_pass(api: Any, name: str) -> None:
    # What tries every split of the spaces would take days.
    passos = [{"id": "end", "tipo": "fim", "variaveis": {name: {"de": "fixo", "valor": "x"}}}]
    refused = await api.post(f"{JOURNEYS}?permitirProblemas=true", journey(inicio="end", passos=passos))
    assert (refused.status, refused.code) == (422, "VALIDATION_ERROR")


async def test_a_variable_is_named_once(api: Any) -> None:
    source = {"de": "fixo", "valor": "x"}
    passos = [{"id": "end", "tipo": "fim", "variaveis": {"1": source, "{{ 1 }}": source}}]
    refused = await api.post(f"{JOURNEYS}?permitirProblemas=true", journey(inicio="end", passos=passos))
    assert (refused.status, refused.body["errors"][0]["path"]) == (422, "/passos/0/variaveis")
