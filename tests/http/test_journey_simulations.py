"""A journey is tried without any effect (C9.17)."""

import re
from datetime import timedelta
from typing import Any

import pytest
from tests.http.template_drafts import create, set_status
from tests.http.test_executions import contact
from tests.http.test_journeys import JOURNEYS, archived, journey, made

from recado.domain.core.timestamps import format_timestamp, parse_timestamp

NOBODY = "cnt_" + "0" * 21
NAMED = {"1": {"de": "contato", "campo": "name", "padrao": "cliente"}}
FIXED = {"de": "fixo", "valor": "fixed"}
PASSOS = [
    {"id": "ola", "tipo": "enviar", "canal": "sms", "texto": "Oi {{1}}", "variaveis": NAMED, "proximo": "chegou"},
    {"id": "chegou", "tipo": "condicao", "sobre": "ola", "sinal": "entregue", "sim": "fim", "nao": "de-novo"},
    {"id": "de-novo", "tipo": "enviar", "canal": "sms", "texto": "Oi!", "proximo": "fim"},
    {"id": "fim", "tipo": "fim"},
]
_TABLES = """
select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and not c.relispartition and n.nspname = 'public'
"""
_HASH = "select md5(string_agg(t::text, chr(10) order by t::text)) from {table} t"


async def everything(api: Any) -> dict[str, str | None]:
    """By table, what its rows hold."""
    names = [row["relname"] for row in await api.database.fetch(_TABLES)]
    return {name: await api.database.fetchval(_HASH.format(table=name)) for name in names}


async def greeting(api: Any, **fields: Any) -> Any:
    """A draft by API that has no problems."""
    return await made(api, inicio="ola", passos=PASSOS, **fields)


async def tried(api: Any, found: Any, body: Any = None, **how: Any) -> Any:
    return await api.post(f"{JOURNEYS}/{found['id']}/simulate", body, **how)


async def people(api: Any, *fields: dict[str, Any]) -> list[str]:
    return [await contact(api, phone=f"+551198765{n:04}", **each) for n, each in enumerate(fields)]


def refusal(answer: Any) -> tuple[int, str, str]:
    return answer.status, answer.code, answer.body["errors"][0]["path"]


async def test_what_would_come_of_a_journey_for_one_contact(api: Any) -> None:
    (contact_id,) = await people(api, {"name": "Ana"})
    found = await greeting(api)
    start = format_timestamp(api.clock.now() + timedelta(days=3))
    answer = await tried(api, found, {"publico": {"contactId": contact_id}, "taxas": {"entregue": 0}, "inicio": start})
    assert answer.status == 200, answer.body
    first, _, second, end = answer.body["passos"]
    assert [(step["passo"], step["entraram"], step["concluiram"]) for step in answer.body["passos"]] == [
        ("ola", 1, 1), ("chegou", 1, 1), ("de-novo", 1, 1), ("fim", 1, 1),
    ]  # fmt: skip
    assert (first["moedas"], second["motivos"], end["tipo"]) == (1_000, {}, "fim")
    assert answer.body["contatos"] == {"lidos": 1, "entraram": 1, "recusados": 0, "terminaram": 1, "emAndamento": 0}
    assert answer.body["resultados"] == {"fim": 1, "meta_atingida": 0, "opt_out": 0, "envio_indeterminado": 0}
    assert answer.body["custo"] == {"mensagens": 2, "moedas": 2_000}
    assert answer.body["inicio"] == start
    assert parse_timestamp(answer.body["fim"]) - parse_timestamp(start) == timedelta(days=1)
    (route,) = answer.body["saidas"]
    assert (route["canal"], route["rota"], route["mensagens"], route["horasAteEscoar"]) == ("sms", "premium", 2, 24.0)
    assert [each["mensagens"] for each in route["porHora"]] == [1, 1]
    (way,) = answer.body["amostra"]
    assert (way["contactId"], way["status"], way["motivo"]) == (contact_id, "concluida", "fim")
    assert [(step["passo"], step["resultado"]) for step in way["passos"]] == [
        ("ola", "enviado"), ("chegou", "nao"), ("de-novo", "enviado"), ("fim", "fim"),
    ]  # fmt: skip
    assert way["passos"][0]["mensagem"] == {
        "canal": "sms", "rota": "premium", "texto": "Oi Ana", "segmentos": 1, "moedas": 1_000,
        "saiEm": start,
    }  # fmt: skip
    assert (answer.body["parcial"], answer.body["pausariaPor"]) == (False, [])


async def test_a_template_is_shown_as_the_contact_would_read_it(api: Any) -> None:
    (contact_id,) = await people(api, {"name": "Ana"})
    template, number_id = await create(api), api.organizations[0].number.id
    await set_status(api, template, "approved")
    chat = {
        "id": "chat", "tipo": "enviar", "canal": "chatapp", "templateId": template["id"], "numberId": number_id,
        "variaveis": NAMED, "proximo": "leu",
    }  # fmt: skip
    leu = {"id": "leu", "tipo": "condicao", "sobre": "chat", "sinal": "lido", "sim": "fim", "nao": "fim"}
    found = await made(api, inicio="chat", passos=[chat, leu, PASSOS[-1]])
    answer = await tried(api, found, {"publico": {"contactId": contact_id}, "taxas": {"lido": 1}})
    (way,) = answer.body["amostra"]
    assert [step["resultado"] for step in way["passos"]] == ["enviado", "sim", "fim"]
    assert way["passos"][0]["mensagem"] == {
        "canal": "chatapp", "numberId": number_id, "texto": "Hello Ana, welcome.", "templateId": template["id"],
        "segmentos": 1, "moedas": 600, "saiEm": answer.body["inicio"],
    }  # fmt: skip
    assert answer.body["passos"][0]["mensagens"]["lidas"] == 1


@pytest.mark.parametrize(
    ("says", "name", "shown"),
    [("Hi {{nome}} {{1}} {{3}}", "Ana", "Hi {{nome}} Ana {{3}}"), ("{{1}}" * 800, "x" * 200, "x" * 4_096)],
)
async def test_whatever_a_template_says_some_of_it_is_shown(api: Any, says: str, name: str, shown: str) -> None:
    (contact_id,) = await people(api, {"name": name})
    number_id = api.organizations[0].number.id
    template = await create(api, components=[{"type": "BODY", "payload": {"text": says}}])
    await set_status(api, template, "approved")
    numbers = range(1, max(map(int, re.findall(r"[0-9]+", says))) + 1)
    named = {str(number): {"de": "contato", "campo": "name"} if number == 1 else FIXED for number in numbers}
    chat = {
        "id": "chat", "tipo": "enviar", "canal": "chatapp", "templateId": template["id"], "numberId": number_id,
        "variaveis": named, "proximo": "fim",
    }  # fmt: skip
    found = await made(api, inicio="chat", passos=[chat, PASSOS[-1]])
    answer = await tried(api, found, {"publico": {"contactId": contact_id}})
    assert answer.status == 200, answer.body
    text = answer.body["amostra"][0]["passos"][0]["mensagem"]["texto"]
    assert text.replace("fixed", "{{3}}") == shown


@pytest.mark.parametrize(("scopes", "text"), [((), "Oi {{1}}"), (("contacts:read",), "Oi Ana")])
async def test_what_contacts_hold_is_shown_to_those_who_may_read_contacts(
    api: Any, scopes: tuple[str, ...], text: str
) -> None:
    (contact_id,) = await people(api, {"name": "Ana"})
    key = await api.key("campaigns:read", *scopes)
    answer = await tried(api, await greeting(api), {"publico": {"contactId": contact_id}}, token=key)
    assert answer.body["amostra"][0]["passos"][0]["mensagem"]["texto"] == text


@pytest.mark.parametrize(("scopes", "phone"), [((), "{{1}}"), (("pii:full",), "+5511987650000")])
async def test_phones_are_shown_to_those_who_may_see_them(api: Any, scopes: tuple[str, ...], phone: str) -> None:
    (contact_id,) = await people(api, {"name": "Ana"})
    variables = {"1": {"de": "contato", "campo": "phone"}, "2": {"de": "contato", "campo": "name"}}
    says = {**PASSOS[0], "texto": "Oi {{1}}, {{2}}", "variaveis": variables}
    found = await made(api, inicio="ola", passos=[says, *PASSOS[1:]])
    key = await api.key("campaigns:read", "contacts:read", *scopes)
    answer = await tried(api, found, {"publico": {"contactId": contact_id}}, token=key)
    assert answer.body["amostra"][0]["passos"][0]["mensagem"]["texto"] == f"Oi {phone}, Ana"


async def test_it_changes_nothing_at_all(api: Any) -> None:
    ids = await people(api, {"name": "Ana"}, {}, {"name": "Bia"})
    made_list = (await api.post("/v2/lists", {"name": "all"})).body
    await api.post(f"/v2/lists/{made_list['id']}/members", {"contactIds": ids})
    found = await greeting(api, gatilho={"tipo": "lista", "listId": made_list["id"]})
    key = await api.key("campaigns:read")
    before = await everything(api)
    assert len(before) > 50
    assert before["contacts"]
    for body in ({"taxas": {"entregue": 0.5, "optOut": 1}}, {"publico": {"contactIds": ids}}):
        answer = await tried(api, found, body, token=key, headers={"Idempotency-Key": "s-1"})
        assert (answer.status, answer.body["contatos"]["entraram"]) == (200, 3)
    after = await everything(api)
    # A key notes when it was used last, whatever it is used for.
    assert {name for name in before if before[name] != after[name]} <= {"api_keys"}


async def test_the_segment_of_the_trigger_or_of_the_body_is_walked(api: Any) -> None:
    vip = {"tags": ["vip"]}
    await people(api, {**vip, "name": "Ana"}, {**vip, "name": "Bia" * 60}, vip, {"name": "Cid"})
    segment = (await api.post("/v2/segments", {"name": "vip", "filters": [
        {"field": "tag", "operator": "is", "value": "vip"},
    ]})).body  # fmt: skip
    found = await greeting(api, gatilho={"tipo": "segmento", "segmentId": segment["id"]})
    answers = [await tried(api, found, body) for body in (None, {"publico": {"segmentId": segment["id"]}})]
    assert [answer.body["contatos"]["lidos"] for answer in answers] == [3, 3]
    # The long name takes two segments.
    assert answers[0].body["custo"] == {"mensagens": 3, "moedas": 4_000}
    assert len(answers[0].body["amostra"]) == 3
    none = await tried(api, found, {"amostra": 0})
    assert none.body["amostra"] == []


async def test_a_repeat_answers_the_same(api: Any) -> None:
    await people(api, *({"name": f"{n}"} for n in range(7)))
    segment = (await api.post("/v2/segments", {"name": "all", "filters": [
        {"field": "optIn", "operator": "is_not", "value": "denied"},
    ]})).body  # fmt: skip
    found = await greeting(api)
    body = {
        "publico": {"segmentId": segment["id"]}, "taxas": {"entregue": 0.5}, "semente": 7,
        "inicio": format_timestamp(api.clock.now()),
    }  # fmt: skip
    first, second = [await tried(api, found, body) for _ in range(2)]
    assert (first.status, first.body) == (200, second.body)


async def test_chosen_branches_and_rates_of_a_step(api: Any) -> None:
    (contact_id,) = await people(api, {})
    found = await greeting(api)
    passos = {"chegou": {"ramo": "nao"}, "de-novo": {"taxas": {"entregue": 0, "falha": 1}}}
    answer = await tried(api, found, {"publico": {"contactId": contact_id}, "passos": passos})
    assert [step["entraram"] for step in answer.body["passos"]] == [1, 1, 1, 1]
    assert answer.body["passos"][2]["mensagens"]["falhas"] == 1


async def test_who_opted_out_does_not_enter(api: Any) -> None:
    ids = await people(api, {}, {})
    await api.post("/contacts/opt-out", {"contactId": ids[0]})
    answer = await tried(api, await greeting(api), {"publico": {"contactIds": ids}})
    assert answer.body["contatos"]["recusados"] == 1
    assert sorted((way["contactId"], way["entrou"]) for way in answer.body["amostra"]) == sorted(
        zip(ids, (False, True), strict=True)
    )


@pytest.mark.parametrize(
    ("body", "path", "code"),
    [
        ({"taxas": {"lido": 1.5}}, "/taxas/lido", "VALIDATION_ERROR"),
        ({"taxas": {"clicou": -0.1}}, "/taxas/clicou", "VALIDATION_ERROR"),
        ({"taxas": {"falha": 0.5}}, "/taxas", "VALIDATION_ERROR"),
        ({"passos": {"ola": {"taxas": {"entregue": 0.9, "falha": 0.2}}}}, "/passos/ola/taxas", "VALIDATION_ERROR"),
        ({"passos": {"none": {"ramo": "sim"}}}, "/passos/none", "VALIDATION_ERROR"),
        ({"passos": {"chegou": {"ramo": "talvez"}}}, "/passos/chegou/ramo", "VALIDATION_ERROR"),
        ({"passos": {"ola": {"ramo": "sim"}}}, "/passos/ola/ramo", "VALIDATION_ERROR"),
        ({"passos": {"fim": {"taxas": {"lido": 1}}}}, "/passos/fim/taxas", "VALIDATION_ERROR"),
        ({"amostra": 21}, "/amostra", "VALIDATION_ERROR"),
        ({"semente": -1}, "/semente", "VALIDATION_ERROR"),
        ({"inicio": "2020-01-01T00:00:00Z"}, "/inicio", "VALIDATION_ERROR"),
        ({"publico": {"contactIds": [NOBODY] * 21}}, "/publico/contactIds", "VALIDATION_ERROR"),
        ({"publico": {"contactId": NOBODY}}, "/publico/contactId", "REFERENCE_NOT_FOUND"),
        ({"publico": {"contactIds": [NOBODY]}}, "/publico/contactIds/0", "REFERENCE_NOT_FOUND"),
        ({"publico": {"segmentId": "seg_" + "0" * 21}}, "/publico/segmentId", "REFERENCE_NOT_FOUND"),
        ({"publico": {"listId": "lst_" + "0" * 21}}, "/publico/listId", "REFERENCE_NOT_FOUND"),
        ({"publico": {"listId": "lst_" + "0" * 21, "contactId": NOBODY}}, "/publico", "AUDIENCE_INVALID"),
        ({}, "/publico", "AUDIENCE_INVALID"),
        ({"dados": {"x": {}}}, "/dados/x", "METADATA_INVALID"),
    ],
)
async def test_what_is_refused(api: Any, body: Any, path: str, code: str) -> None:
    assert refusal(await tried(api, await greeting(api), body)) == (422, code, path)


async def test_which_journeys_are_tried(api: Any) -> None:
    (contact_id,) = await people(api, {})
    body = {"publico": {"contactId": contact_id}}
    unknown = await tried(api, {"id": "jrn_" + "0" * 21}, body)
    assert (unknown.status, unknown.code) == (404, "NOT_FOUND")
    foreign = await tried(api, await greeting(api), body, organization=1)
    assert (foreign.status, foreign.code) == (404, "NOT_FOUND")
    lacking = await tried(api, await made(api, passos=[{"id": "wait", "tipo": "esperar"}]), body)
    assert (lacking.status, lacking.code, lacking.body["errors"][0]["path"]) == (
        422, "JORNADA_COM_PROBLEMAS", "/passos/0",
    )  # fmt: skip
    assert lacking.body["meta"]["problemas"]
    assert (await tried(api, await archived(api, await greeting(api)), body)).status == 200
    rcs = [{"id": "rcs", "tipo": "enviar", "canal": "rcs", "rcs": {"conteudo": {"text": "x"}}, "proximo": "end"}]
    other = await made(api, inicio="rcs", passos=[*rcs, *journey()["passos"][1:]])
    assert (await tried(api, other, body)).status == 200
    key = await api.key("campaigns:write")
    assert (await tried(api, await greeting(api), body, token=key)).status == 403
