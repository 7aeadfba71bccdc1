"""People of the chat app who show a user id, alone or beside their phone (C28.6)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from tests.people import insert_people
from tests.plans import indexes, nodes, plan_for_any
from tests.services.inbound.test_inbound import ENV, OTHER, PHONE, Phone, phone

from recado.channels.core.events import Preference
from recado.storage.contacts import contacts, inbound_contacts
from recado.storage.core.connections.postgres import Database
from recado.storage.messages.recipients import RecipientKey, find

__all__ = ["phone"]  # a fixture
USER, ANOTHER = "BR.1502576394655843", "US.ENT.99"


async def refused(phone: Phone, user: str = USER) -> bool:
    """Whether the registry knows the id."""
    key = RecipientKey(phone.number.organization_id, ENV, phone=user)
    return (await find(phone.db, [key]))[0].registered


async def told(phone: Phone) -> list[Any]:
    """The events of refusals, where somebody wants to hear of them: none here, so that of the registry alone."""
    return [tuple(row) for row in await phone.db.fetch("select kind, source from opt_outs order by at")]


async def test_a_user_id_of_nobody_makes_no_contact(phone: Phone) -> None:
    await phone.write(phone.event(sender=USER, profile_name="Ana"), phone.event(sender="nobody"))
    rows = await phone.db.fetch("select recipient, contact_id, status from messages")
    assert [*map(tuple, rows)] == [(USER, None, "delivered")]
    assert await phone.count("contacts") == 0


async def test_who_writes_with_a_phone_is_found_by_the_user_id_afterwards(phone: Phone) -> None:
    await phone.write(phone.event(user_id=USER))
    contact = await phone.contact()
    assert (contact["chatapp_user_id"], contact["revision"]) == (USER, 1)
    later = phone.event("hello", sender=USER, profile_name="Ana")
    await phone.write(later)
    after = await phone.contact()
    assert (after["last_interaction_at"], after["chatapp_profile_name"]) == (later.at, "Ana")
    ids = await phone.db.fetch("select contact_id from messages")
    assert {row["contact_id"] for row in ids} == {contact["id"]}
    assert await phone.count("contacts") == 1


async def test_a_known_contact_gets_the_id_that_came_last_and_no_odd_one(phone: Phone) -> None:
    await phone.write(phone.event())
    first = await phone.contact()
    await phone.write(phone.event(user_id="?"), phone.event(sender=OTHER))
    assert (await phone.contact())["revision"] == first["revision"]
    for user in (USER, USER, ANOTHER):
        await phone.write(phone.event(user_id=user))
    after = await phone.contact()
    assert (after["chatapp_user_id"], after["revision"]) == (ANOTHER, first["revision"] + 2)


async def test_who_writes_with_both_names_costs_no_statement_once_they_are_known(phone: Phone) -> None:
    await phone.write(phone.event(user_id=USER))
    written = await phone.db.fetchval("select xmin::text from contacts")
    await phone.write(phone.event(user_id=USER, at=datetime(2026, 1, 1, tzinfo=UTC)))
    assert await phone.db.fetchval("select xmin::text from contacts") == written


async def test_a_keyword_of_nobody_s_id_is_kept_in_the_registry_and_taken_back_by_its_own(phone: Phone) -> None:
    await phone.write(phone.event("Stop", sender=USER), phone.event("start", sender=ANOTHER))
    assert (await refused(phone), await refused(phone, ANOTHER)) == (True, False)
    assert await told(phone) == [("phone", "inbound_keyword")]
    assert await phone.count("opt_out_replies") == 0
    early = phone.event("start", sender=USER, at=datetime.now(UTC) - timedelta(hours=1))
    await phone.write(early)
    assert await refused(phone)
    await phone.write(phone.event("start", sender=USER))
    assert not await refused(phone)


@pytest.mark.parametrize(("words", "refuses"), [(("stop", "start"), False), (("start", "stop"), True)])
async def test_of_the_words_of_one_block_the_last_counts(phone: Phone, words: tuple[str, ...], refuses: bool) -> None:
    await phone.write(*[phone.event(word, sender=USER) for word in words])
    assert await refused(phone) is refuses


async def test_what_an_operator_refused_no_keyword_takes_back(phone: Phone) -> None:
    await phone.write(phone.event("stop", sender=USER))
    await phone.db.execute("update opt_outs set source = 'call centre'")
    await phone.write(phone.event("start", sender=USER))
    assert await refused(phone)


async def test_a_stop_at_the_provider_counts_for_an_id_and_for_its_contact(phone: Phone) -> None:
    await phone.write(Preference(phone.number.phone_number_id, USER, True, datetime.now(UTC)))
    assert await refused(phone)
    assert await told(phone) == [("phone", "provider")]
    await phone.write(phone.event(user_id=ANOTHER))
    await phone.write(Preference(phone.number.phone_number_id, ANOTHER, True, datetime.now(UTC)))
    assert (await phone.contact())["opt_in_status"] == "denied"
    assert await refused(phone, ANOTHER)


async def test_a_refusal_under_one_name_is_one_under_both(phone: Phone) -> None:
    await phone.write(phone.event(user_id=USER))
    await phone.write(phone.event("sair", sender=USER))
    contact = await phone.contact()
    assert (contact["opt_in_status"], contact["opt_in_revoked_reason"]) == ("denied", "chatapp: sair")
    assert (await refused(phone), await refused(phone, PHONE)) == (True, True)
    await phone.write(phone.event("voltar", user_id=USER))
    assert (await phone.contact())["opt_in_status"] == "granted"
    assert (await refused(phone), await refused(phone, PHONE)) == (False, False)


async def test_an_id_that_refused_makes_its_contact_one_that_refused(phone: Phone) -> None:
    await phone.write(phone.event("stop", sender=USER), phone.event("stop", sender=ANOTHER))
    await phone.write(phone.event())
    await phone.write(phone.event(user_id=USER), phone.event(sender=OTHER, user_id=ANOTHER))
    for number in (PHONE, OTHER):  # known before, and new
        contact = await phone.contact(number)
        assert (contact["opt_in_status"], contact["opt_in_source"]) == ("denied", "inbound_keyword")
        assert await refused(phone, number)


async def test_the_id_of_a_contact_that_refused_is_in_the_registry_once_it_is_known(phone: Phone) -> None:
    await phone.write(phone.event("stop"))
    assert not await refused(phone)
    await phone.write(phone.event("hello", user_id=USER))
    assert await refused(phone)


async def test_of_several_contacts_with_an_id_the_one_that_was_heard_of_last_is_meant(phone: Phone) -> None:
    await phone.write(phone.event(user_id=USER), phone.event(sender=OTHER, user_id=USER))
    await phone.db.execute("update contacts set last_interaction_at = '2026-01-01' where phone = $1", PHONE)
    user = (phone.number.organization_id, ENV, USER)
    assert await inbound_contacts.of_users(phone.db, [user, (*user[:2], ANOTHER)]) == {user: (*user[:2], OTHER)}


async def test_however_many_contacts_have_an_id_few_of_them_are_read(database: Database) -> None:
    await insert_people(database, "org_1", ENV, [{"chatapp_user_id": USER} for _ in range(100)])
    sql = inbound_contacts.SQL.of_users.rstrip().rstrip(";")
    found = await database.fetchval(
        f"explain (analyze, timing off, format json) {sql}", ["org_1"], [ENV], [USER], inbound_contacts.MOST_OF_USER
    )
    (read,) = [each for each in nodes(orjson.loads(found)[0]["Plan"]) if each.get("Relation Name") == "contacts"]
    assert read["Actual Rows"] == inbound_contacts.MOST_OF_USER
    assert len(await inbound_contacts.of_users(database, [("org_1", ENV, USER)])) == 1


async def test_contacts_are_found_by_the_index_of_user_ids(database: Database) -> None:
    for sql in (inbound_contacts.SQL.of_users, contacts.SQL.by_user_id):
        assert "contacts_chatapp_user" in indexes(await plan_for_any(database.hot, sql))
