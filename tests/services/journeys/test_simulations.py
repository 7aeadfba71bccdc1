"""Who would be taken along by a journey, and what their messages would cost and wait for (C9.17)."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.people import insert_people
from tests.services.journeys.conftest import BORN, END, ENDS, ENV, HOUR, Way, approved_template, on, sms, wait

from recado.domain.audience.segment import Field, Leaf, Operator
from recado.domain.contacts.consent import OptOutEntry
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import CONTACT, lowest_id
from recado.domain.journeys.execution import EndReason
from recado.domain.journeys.simulation.assumptions import Assumptions, Rate
from recado.services.journeys import simulation_kinds
from recado.services.journeys import simulations as module
from recado.services.journeys.simulations import JourneySimulations, Simulated, SimulationParts, WantedRun
from recado.storage.audience.segment_evaluation import Evaluation
from recado.storage.batches.audiences import Audience
from recado.storage.contacts import opt_outs
from recado.storage.contacts.opt_outs import Registrant
from recado.storage.journeys import simulation_facts
from recado.storage.journeys.journeys import Journey
from recado.storage.journeys.simulation_facts import AudienceFacts

EVERYBODY = Leaf(Field.OPT_IN, Operator.IS_NOT, "denied")


def parts(way: Way) -> SimulationParts:
    return SimulationParts(
        db=way.db,
        evaluation=Evaluation(way.db),
        step_messages=way.step_messages,
        directories=way.directories,
        clock=way.clock,
        link_base="https://links.example.org",
        billed=True,
    )


def read(found: Simulated) -> int:
    return found.tallies.entered + found.tallies.denied


def wanted(people: Audience | Sequence[str] | None = None, **fields: Any) -> WantedRun:
    audience = Audience(before_id=CONTACT + "~", tree=EVERYBODY) if people is None else people
    given = {"start": BORN, "assumptions": Assumptions(), "people": audience, "shown": 0}
    return WantedRun(**{**given, **fields})


async def tried(way: Way, journey: Journey, *asked: Any, **fields: Any) -> Simulated:
    return await JourneySimulations(parts(way)).run(journey, wanted(*asked, **fields))


async def crowd(way: Way, people: Sequence[dict[str, Any]]) -> list[str]:
    return await insert_people(way.db, way.organization.id, ENV, people)


def chat(step_id: str, following: str, template_id: str, number_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": step_id, "tipo": "enviar", "canal": "chatapp", "templateId": template_id, "numberId": number_id,
        "proximo": following, "variaveis": {"1": {"de": "contato", "campo": "name"}}, **fields,
    }  # fmt: skip


async def test_each_contact_takes_the_way_that_its_fields_say(way: Way) -> None:
    cities = ["Recife", "recife", "Natal", None]
    tags = [[], ["a"]]
    people = [{"attributes": {"city": cities[n % 4]}, "name": f"Person {n}", "tags": tags[n % 2]} for n in range(400)]
    await crowd(way, people)
    city = {"id": "city", "tipo": "condicao", "campo": "attributes.city", "operador": "igual", "valor": "Recife"}
    tag = {"id": "tag", "tipo": "condicao", "campo": "tags", "operador": "contem", "valor": "a"}
    late = {"id": "late", "tipo": "condicao", "campo": "createdAt", "operador": "maior", "valor": "2030-01-01"}
    ways = {"sim": "yes", "nao": "no"}
    journey = await way.journey({**city, "sim": "tag", "nao": "late"}, {**tag, **ways}, {**late, **ways}, *ENDS)
    found = await tried(way, journey)
    counts = {step: found.tallies.numbers(step) for step in ("city", "tag", "late")}
    assert (counts["city"].result("sim"), counts["city"].result("nao")) == (200, 200)
    assert (counts["tag"].result("sim"), counts["tag"].result("nao")) == (100, 100)
    assert counts["late"].result("nao") == 200
    assert (read(found), found.tallies.denied, found.under_way, found.partial) == (400, 0, 0, False)


async def test_blocks_of_a_list_and_of_a_segment_are_read_to_the_end(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation_facts, "BLOCK", 7)
    ids = await crowd(way, [{"name": f"{n}"} for n in range(30)])
    list_id = "lst_" + "0" * 21
    await way.db.execute(
        "insert into static_list_members select $1, $2, id, now() from contacts where id = any($3::text[])",
        way.organization.id, list_id, ids[:21],
    )  # fmt: skip
    journey = await way.journey(wait("wait", "end"), END)
    assert read(await tried(way, journey)) == 30
    assert read(await tried(way, journey, Audience(before_id=CONTACT + "~", list_id=list_id))) == 21
    older = Audience(before_id=lowest_id(CONTACT, BORN - timedelta(days=400)), tree=EVERYBODY)
    assert read(await tried(way, journey, older)) == 0


async def test_a_block_of_contacts_who_hold_much_ends_early_and_all_are_walked(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = []
    rows_of = AudienceFacts.rows

    async def rows(facts: AudienceFacts) -> list[Any]:
        blocks.append(await rows_of(facts))
        return blocks[-1]

    monkeypatch.setattr(AudienceFacts, "rows", rows)
    texts = [secrets.token_urlsafe(150_000) for _ in range(12)]
    much = [{"attributes": {"a": [text, "\N{WAVING HAND SIGN}"], "b": f"{n}"}} for n, text in enumerate(texts)]
    packed = [{"attributes": {"a": "x" * 400_000, "b": f"{n}"}} for n in range(12)]
    await crowd(way, much + packed + [{}] * 12)
    ways = {"sim": "yes", "nao": "no"}
    condition = {"id": "a", "tipo": "condicao", "operador": "existe", **ways}
    monkeypatch.setattr(simulation_facts, "STORED_BYTES", 2**21)
    for field in ("attributes.a", "attributes.b"):
        blocks.clear()
        found = await tried(way, await way.journey({**condition, "campo": field}, *ENDS))
        steps = found.tallies.numbers("a")
        assert (read(found), steps.result("sim"), steps.result("nao"), found.partial) == (36, 24, 12, False)
        assert len([block for block in blocks if block]) > 1
        assert all(sum(len(row["held"]) for row in block) < 1.5 * simulation_facts.BLOCK_BYTES for block in blocks)


async def test_kinds_are_gathered_while_there_is_room(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    people = [{"attributes": {f"a{bit}": bool(n >> bit & 1) for bit in range(6)}} for n in range(64)]
    await crowd(way, people)
    conditions = [
        {
            "id": f"c{bit}", "tipo": "condicao", "campo": f"attributes.a{bit}", "operador": "igual", "valor": True,
            "sim": f"c{bit + 1}" if bit < 5 else "yes", "nao": f"c{bit + 1}" if bit < 5 else "no",
        }
        for bit in range(6)
    ]  # fmt: skip
    journey = await way.journey(*conditions, *ENDS)
    found = await tried(way, journey)
    assert (read(found), found.partial) == (64, False)
    monkeypatch.setattr(simulation_kinds, "MOST_BYTES", 10 * simulation_facts.KIND_BYTES)
    found = await tried(way, journey)
    assert found.partial
    assert 4 <= read(found) <= 10


async def test_messages_have_their_prices_by_segments_and_regions(way: Way) -> None:
    names = ["Ana", "x" * 200, "", "Bia"]
    phones = ["+5511987650001", "+5511987650002", "+5511987650003", "+4915000000077"]
    await crowd(way, [{"name": name, "phone": phone} for name, phone in zip(names, phones, strict=True)])
    text = {**sms("hello", "end", "Oi {{1}}"), "variaveis": {"1": {"de": "contato", "campo": "name"}}}
    found = await tried(way, await way.journey(text, END))
    assert found.tallies.coins["hello"] == 1_000 + 2_000 + 3_500
    assert found.tallies.skipped["hello"] == {"variavel_vazia": 1}


async def test_those_who_are_shown_are_taken_out_of_their_kinds(way: Way) -> None:
    await crowd(way, [{"name": f"Person {n}"} for n in range(9)] + [{"name": None}])
    text = {**sms("hello", "end", "Oi {{1}}"), "variaveis": {"1": {"de": "contato", "campo": "name"}}}
    found = await tried(way, await way.journey(text, END), shown=3)
    assert read(found) == found.tallies.ends[EndReason.FINISHED] == 10
    assert sorted(trail.contact.name or "" for trail in found.trails) == ["", "Person 0", "Person 1"]
    results = {trail.contact.name: trail.lines[0].result for trail in found.trails}
    assert results == {None: "pulado", "Person 0": "enviado", "Person 1": "enviado"}


async def test_the_registry_ends_who_asked_for_nothing_more(way: Way) -> None:
    phones = ["+5511987650001", "+5511987650002", "+525512345678"]
    ids = await crowd(way, [{"phone": phone, "email": f"p{n}@example.org"} for n, phone in enumerate(phones)])
    where = (way.organization.id, ENV)
    entry = OptOutEntry(BORN, None)
    async with way.db.transaction() as connection:
        await opt_outs.enter(connection, [(Registrant(*where, phones[0]), entry)])
        await opt_outs.enter(connection, [(Registrant(*where, None, "P1@example.org"), entry)])
    journey = await way.journey(wait("wait", "end"), END)
    for people in (None, ids):
        found = await tried(way, journey, people)
        assert found.tallies.ends == {EndReason.OPTED_OUT: 2, EndReason.FINISHED: 1}


async def test_caps_count_what_journeys_sent_before(way: Way) -> None:
    journey = await way.journey(sms("first", "end"), END, teto_de_frequencia={"mensagens": 1, "dias": 7})
    written, _ = await crowd(way, [{}, {}])
    await way.db.execute("update wallets set balance_coins = 1000000")
    await way.begin(journey, written)
    await way.work()
    assert len(way.accepted) == 1
    found = await tried(way, journey, start=way.clock.now())
    assert found.tallies.skipped["first"] == {"teto_de_frequencia": 1}
    later = await tried(way, journey, start=way.clock.now() + timedelta(days=8))
    assert later.tallies.messages["first"] == 2


async def test_a_number_is_as_slow_as_it_is_and_has_used_of_its_tier(way: Way) -> None:
    template_id = await approved_template(way)
    await crowd(way, [{"name": f"Person {n}"} for n in range(600)])
    await way.db.execute("update numbers set per_second = 1, messaging_tier = 'tier_250', quality_rating = 'green'")
    await way.db.execute(
        "insert into tier_recipients (organization_id, sender_id, recipient_hash, last_at) "
        "select $1, $2, n, $3 from generate_series(1, 50) n",
        way.organization.id, way.number.id, BORN - HOUR,
    )  # fmt: skip
    journey = await way.journey(chat("hello", "ask", template_id, way.number.id), on("lido", "hello"), *ENDS)
    found = await tried(way, journey, assumptions=Assumptions({Rate.LIDO: 1.0}))
    departures = found.tallies.departures[way.number.id]
    assert sum(count for hour, count in departures.by_hour.items() if hour < BORN + 22 * HOUR) == 200
    # The first fifty places become free before the others expire, a day later.
    assert 250 <= departures.by_hour.total() <= 265
    assert departures.expired == 600 - departures.by_hour.total()


async def test_quiet_hours_of_the_organization_hold_the_sends(way: Way) -> None:
    await way.db.execute("update organizations set quiet_start = '11:00', quiet_end = '18:30', time_zone = 'UTC'")
    way.directories.organizations.forget(way.organization.id)
    await crowd(way, [{}])
    found = await tried(way, await way.journey(sms("hello", "end"), END))
    assert found.tallies.last_at == BORN + 6.5 * HOUR


async def test_what_would_pause_the_journey_is_told(way: Way) -> None:
    template_id = await approved_template(way)
    await crowd(way, [{"name": "Ana"}])
    journey = await way.journey(chat("hello", "end", template_id, "num_" + "0" * 21), END)
    found = await tried(way, journey)
    assert [(each.hindrance.value, each.step) for each in found.hindered] == [("numero_indisponivel", "hello")]
    assert found.tallies.skipped["hello"] == {"numero_indisponivel": 1}


async def test_without_time_it_answers_what_it_has(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    await crowd(way, [{"name": f"Person {n}"} for n in range(30)])
    journey = await way.journey(wait("wait", "end"), END)
    monkeypatch.setattr(simulation_facts, "BLOCK", 10)
    monkeypatch.setattr(module, "READ_SECONDS", -1.0)
    found = await tried(way, journey)
    assert (read(found), found.partial, found.under_way) == (10, True, 0)
    monkeypatch.setattr(module, "RUN_SECONDS", -1.0)
    monkeypatch.setattr(module, "DECIDE_AT_ONCE", 1)
    found = await tried(way, journey)
    assert (read(found), found.partial, found.under_way) == (10, True, 10)
    assert found.tallies.numbers("wait").waiting == 10


async def test_an_organization_tries_one_at_a_time_and_one_waits(way: Way) -> None:
    await crowd(way, [{"name": f"Person {n}"} for n in range(30)])
    journey = await way.journey(wait("wait", "end"), END)
    simulations = JourneySimulations(parts(way))
    runs = [asyncio.ensure_future(simulations.run(journey, wanted())) for _ in range(3)]
    found = await asyncio.gather(*runs, return_exceptions=True)
    assert [type(each) for each in found] == [Simulated, Simulated, Unavailable]
    other = replace(journey, organization_id=way.organization.id)
    assert read(await simulations.run(other, wanted())) == 30
