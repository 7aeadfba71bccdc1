"""Steps that send by e-mail: what is queued of them, and what is left out (C9.3, C9.8.3, C10.2.5)."""

from collections import Counter
from datetime import timedelta
from typing import Any

import orjson
import pytest
from tests.journey_emails import SIMULATOR, add_email_template
from tests.services.journeys.conftest import END, ENDS, ENV, Way, on
from tests.services.journeys.test_simulations import tried

from recado.domain.contacts.contact import email_hash
from recado.domain.core.phones import recipient_hash
from recado.domain.journeys.journey import Hindrance
from recado.storage.messages.messages import ConsentCheck

ANA = "Ana@example.com"
NAMED = {"name": {"de": "contato", "campo": "name"}}

_SUPPRESS = """
insert into email_suppressions (organization_id, env, id, email, reason, hash, updated_at)
values ($1, $2, 'sup_1', $3, 'manual', $4, now())
"""


async def email(way: Way, following: str = "end", **fields: Any) -> dict[str, Any]:
    template_id = await add_email_template(way.db, way.ids, way.organization.id)
    step = {"id": "hello", "tipo": "enviar", "canal": "email", "templateId": template_id, "variaveis": NAMED}
    return {**step, "proximo": following, **fields}


async def test_the_template_and_its_values_are_queued_and_no_body(way: Way) -> None:
    step = await email(way)
    journey = await way.journey(step, END)
    contact_id = await way.person(name="Ana <3", email=ANA)
    execution = await way.begin(journey, contact_id)
    await way.work()
    assert await way.trail(execution) == [("hello", "enviado", None), ("end", "fim", None)]
    (message,) = way.accepted
    assert (message.channel, message.recipient, message.contact_id) == ("email", ANA, contact_id)
    assert (message.owner, message.template_id) == (journey.id, step["templateId"])
    assert (message.consent, message.obeys_quiet_hours) == (ConsentCheck.NOT_REFUSED, False)
    assert (message.content, message.links, message.coins) == (None, (), message.coins)
    assert message.coins
    phone = await way.db.fetchval("select phone from contacts where id = $1", contact_id)
    assert message.contact_hash == recipient_hash(way.organization.id, phone)
    row = await way.db.fetchrow(
        "select status, payload::text, details::text, journey_id from messages where id = $1", message.id
    )
    assert (row["status"], row["journey_id"]) == ("queued", journey.id)
    assert orjson.loads(row["payload"]) == {"variables": {"name": "Ana <3"}}
    body = '<p>Hello Ana &lt;3, <a href="https://example.com/go">go</a></p>'
    assert orjson.loads(row["details"]) == {
        "subject": "Hi Ana <3", "bodyBytes": len(body), "from": "Sandbox <no-reply@sandbox.test>",
    }  # fmt: skip
    assert (
        await way.db.fetchval(
            "select held_coins from wallets where organization_id = $1 and env = $2", way.organization.id, ENV
        )
        == message.coins
    )


@pytest.mark.parametrize(
    ("contact", "change", "reason"),
    [
        ({"name": "Ana"}, None, "sem_email"),
        ({"email": ANA}, None, "variavel_vazia"),
        ({"name": "Ana", "email": f"suppressionlist@{SIMULATOR}"}, None, "email_suprimido"),
        ({"name": "Ana", "email": ANA}, "update email_senders set status = 'pending', is_default = false",
         "numero_indisponivel"),
        ({"name": "Ana" * 100, "email": ANA}, None, "conteudo_invalido"),
    ],
)  # fmt: skip
async def test_an_email_that_cannot_be_made_is_left_out(
    way: Way, contact: dict[str, Any], change: str | None, reason: str
) -> None:
    execution = await way.begin(await way.journey(await email(way), END), await way.person(**contact))
    if change is not None:
        await way.db.execute(change)
    await way.work()
    assert await way.trail(execution) == [("hello", "pulado", reason), ("end", "fim", None)]
    assert way.accepted == []


async def test_who_gets_no_email_any_more_is_passed_over_and_the_others_are_not(way: Way) -> None:
    journey = await way.journey(await email(way), END)
    hashed = email_hash(way.organization.id, ANA)
    await way.db.execute(_SUPPRESS, way.organization.id, ENV, ANA, hashed)
    suppressed = await way.begin(journey, await way.person(name="Ana", email=ANA.lower()))
    other = await way.begin(journey, await way.person(name="Bo", email="bo@example.com"))
    await way.work()
    assert (await way.trail(suppressed))[0] == ("hello", "pulado", "email_suprimido")
    assert (await way.trail(other))[0] == ("hello", "enviado", None)


async def test_a_journey_whose_template_is_archived_pauses_itself(way: Way) -> None:
    journey = await way.journey(await email(way), END)
    execution = await way.begin(journey, await way.person(name="Ana", email=ANA))
    await way.db.execute("update email_templates set status = 'archived'")
    await way.work()
    assert (await way.trail(execution))[0] == ("hello", "pulado", Hindrance.TEMPLATE_UNAVAILABLE)
    assert [each.owner for each in way.paused] == [journey.id]
    told = await way.db.fetchval("select pausada_por ->> 'rotulo' from journeys where id = $1", journey.id)
    assert told == "welcome"


async def test_a_variable_that_the_template_got_since_is_not_sent_empty(way: Way) -> None:
    execution = await way.begin(await way.journey(await email(way), END), await way.person(name="Ana", email=ANA))
    await way.db.execute("update email_templates set html = html || '{{more}}'")
    await way.work()
    assert (await way.trail(execution))[0] == ("hello", "pulado", "conteudo_invalido")


@pytest.mark.parametrize(
    ("signal", "change"), [("lido", "opened_at = $2"), ("entregue", "status = 'delivered', delivered_at = $2")]
)
async def test_a_condition_hears_of_an_email(way: Way, signal: str, change: str) -> None:
    journey = await way.journey(await email(way, "ask"), on(signal, "hello"), *ENDS)
    execution = await way.begin(journey, await way.person(name="Ana", email=ANA))
    await way.work()
    now = way.clock.now()
    (message,) = way.accepted
    await way.db.execute("delete from dispatch where id = $1", message.id)
    await way.db.execute("update messages set status = 'sent', sent_at = $2 where id = $1", message.id, now)
    await way.work(timedelta(minutes=1))
    assert (await way.read(execution.key)).step_id == "ask"
    await way.db.execute(f"update messages set {change} where id = $1", message.id, way.clock.now())
    await way.work()
    assert ("ask", "sim", None) in await way.trail(execution)


async def test_a_dry_run_tells_who_would_get_the_email_and_what_it_costs(way: Way) -> None:
    journey = await way.journey(await email(way, "ask"), on("lido", "hello"), *ENDS)
    await way.person(name="Ana", email=ANA)
    await way.person(name="Bo", email="bo@example.com")
    await way.person(name="Cid")
    await way.person(email="nobody@example.com")
    await way.db.execute(_SUPPRESS, way.organization.id, ENV, ANA, email_hash(way.organization.id, ANA))

    found = await tried(way, journey, shown=4)
    numbers = found.tallies.numbers("hello")
    assert (found.tallies.entered, numbers.result("enviado"), numbers.result("pulado")) == (4, 1, 3)
    details = Counter(line.detail for trail in found.trails for line in trail.lines if line.step_id == "hello")
    assert details == {None: 1, "sem_email": 1, "variavel_vazia": 1, "email_suprimido": 1}
    (offer,) = found.lanes.values()
    assert (offer.channel, offer.units) == ("email", 1)
    assert offer.coins
    assert found.hindered == []
