"""Contacts that are created many in a commit: each gets its own answer, whatever the others are (C12.1, C12.5)."""

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from recado.domain.contacts.consent import ConsentChange, ConsentStatus, OptOutEntry
from recado.domain.contacts.contact import Contact
from recado.domain.contacts.contact_input import read_new
from recado.domain.core.errors import Problem
from recado.domain.core.ids import CONTACT, IdSource
from recado.engine.clock import SystemClock
from recado.services.contacts.contact_creation import NewContact
from recado.services.contacts.contact_rules import new_contact
from recado.services.effects.consequences import Consequences
from recado.services.imports.contact_system import ContactSystem
from recado.storage.access.directories import Directories
from recado.storage.contacts import debtor_groups, opt_outs
from recado.storage.contacts.documents import DocumentCipher
from recado.storage.contacts.opt_outs import Registrant
from recado.storage.core.audit import SYSTEM
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing

ORG, ENV = "org_1", "test"
GRANTED = ConsentChange(ConsentStatus.GRANTED, source="file")
GROUP = {"company": "Loja", "phones": ["+5511987650000"]}


class People:
    """The service, and contacts to create."""

    def __init__(self, db: Database) -> None:
        clock = SystemClock()
        self.db = db
        self.ids = IdSource(clock, random.Random(5))
        self.documents = DocumentCipher(KeyRing({"k": b"k" * 32}), b"i" * 32)
        self.system = ContactSystem(
            db,
            ids=self.ids,
            documents=self.documents,
            subscriptions=Directories(db, clock=clock).subscriptions,
            effects=Consequences(),
            changed=lambda change: None,
            clock=clock,
        )

    def new(self, serial: int, change: ConsentChange | None = None, **fields: Any) -> NewContact:
        given = read_new({"phone": f"+551198765{serial:04}", **fields}, date(2026, 3, 1))
        assert given.errors == ()
        contact = new_contact(
            given.values, self.documents, organization_id=ORG, env=ENV, contact_id=self.ids.new(CONTACT)
        )
        groups = debtor_groups.with_ids(given.values.get("debtor_groups", ()), self.ids)
        return NewContact(contact, SYSTEM, change, groups)

    async def run(self, *batch: NewContact) -> list[Any]:
        """One batch as the batcher runs it; of each the stored status, or the code of its refusal."""
        found = await self.system.creation._run(batch)
        return [each.code if isinstance(each, Problem) else each.opt_in_status.value for each in found]  # type: ignore[union-attr]

    async def count(self, table: str) -> int:
        return int(await self.db.fetchval(f"select count(*) from {table}"))


@pytest.fixture
async def people(database: Database) -> AsyncIterator[People]:
    made = People(database)
    await made.system.start()
    yield made
    await made.system.stop()


async def test_everyone_of_a_batch_gets_an_answer_of_their_own(people: People) -> None:
    await people.run(people.new(1, externalId="taken"))
    answers = await people.run(
        people.new(1),
        people.new(2, externalId="taken"),
        people.new(3),
        people.new(3),
        people.new(4, GRANTED),
        people.new(5, companyId="emp_none"),
        people.new(6, ConsentChange(ConsentStatus.GRANTED, at=datetime(2999, 1, 1, tzinfo=UTC), dates_count=True)),
        people.new(7, debtorGroups=[GROUP]),
        people.new(8, externalId="twice"),
        people.new(9, externalId="twice"),
    )
    assert answers == [
        "PHONE_TAKEN", "EXTERNAL_ID_TAKEN", "unknown", "PHONE_TAKEN", "granted", "REFERENCE_NOT_FOUND",
        "DATA_DO_CONSENTIMENTO_NO_FUTURO", "unknown", "unknown", "EXTERNAL_ID_TAKEN",
    ]  # fmt: skip
    assert await people.count("contacts") == 5
    assert await people.count("contact_consents") == 1
    assert await people.count("debtor_groups") == 1


async def test_a_batch_whose_answer_was_lost_can_run_again(people: People) -> None:
    batch = [people.new(1), people.new(2, GRANTED), people.new(3, debtorGroups=[GROUP]), people.new(4, externalId="e")]
    first = await people.run(*batch)
    stored = await people.db.fetch("select * from contacts order by id")
    assert await people.run(*batch) == first
    assert await people.db.fetch("select * from contacts order by id") == stored
    assert await people.count("contact_consents") == 1
    assert await people.count("debtor_groups") == 1


async def test_the_registry_is_asked_for_everyone_by_phone_and_by_address(people: People) -> None:
    refused = datetime(2026, 1, 1, tzinfo=UTC)
    for address in (Registrant(ORG, ENV, phone="+5511987650001"), Registrant(ORG, ENV, email="Maria@example.com")):
        await opt_outs.enter(people.db, [(address, OptOutEntry(refused, "site"))])
    answers = await people.run(
        people.new(1),
        people.new(2, email="maria@Example.com"),
        people.new(3),
        people.new(4, GRANTED, email="maria@example.com"),
    )
    assert answers == ["denied", "denied", "unknown", "granted"]
    # The younger consent has left the registry, but for the address, with which another one refuses.
    assert await people.count("opt_outs") == 3


async def test_a_group_of_another_contact_refuses_its_contact_alone(people: People) -> None:
    first = people.new(1, debtorGroups=[GROUP])
    await people.run(first)
    mine = first.groups[0].id
    batch = [people.new(n, debtorGroups=[GROUP | {"id": mine} if n == 3 else GROUP]) for n in range(2, 6)]
    found = await asyncio.gather(*(people.system.creation.create(new) for new in batch), return_exceptions=True)
    answers = [each.code if isinstance(each, Problem) else type(each) for each in found]
    assert answers == [Contact, "REFERENCE_NOT_FOUND", Contact, Contact]
    assert await people.count("contacts") == 4


async def test_a_refusal_at_birth_enters_the_registry_with_phone_and_address(people: People) -> None:
    change = ConsentChange(ConsentStatus.DENIED, revoked_at=datetime(2026, 1, 1, tzinfo=UTC), dates_count=True)
    assert await people.run(people.new(1, change, email="m@example.com")) == ["denied"]
    (found,) = await opt_outs.entries(people.db, [Registrant(ORG, ENV, email="M@example.com")])
    assert found is not None
    assert found.at == datetime(2026, 1, 1, tzinfo=UTC)
    later = ConsentChange(ConsentStatus.GRANTED, source="loja", at=found.at + timedelta(days=1), dates_count=True)
    assert await people.run(people.new(2, later, email="m@example.com")) == ["granted"]
