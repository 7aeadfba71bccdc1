"""The registry joins refusals as the domain does (C12.5.8)."""

from datetime import UTC, datetime, timedelta
from itertools import product

from recado.domain.contacts.consent import OptOutEntry
from recado.storage.contacts import opt_outs
from recado.storage.contacts.opt_outs import Registrant
from recado.storage.core.connections.postgres import Database

FIRST = datetime(2026, 3, 1, tzinfo=UTC)
REFUSALS = [
    OptOutEntry(FIRST + timedelta(days=day), source)
    for day in range(3)
    for source in (None, "call centre", "complaint", "inbound_keyword", "provider")
]


async def test_a_refusal_joins_the_entry_that_is_there(database: Database) -> None:
    pairs = list(product(REFUSALS, repeat=2))
    addresses = [Registrant("org_1", "test", phone=f"+55119{serial:08}") for serial in range(len(pairs))]
    for turn in range(2):
        entered = [pair[turn] for pair in pairs]
        await opt_outs.enter(database, list(zip(addresses, entered, strict=True)))
    assert await opt_outs.entries(database, addresses) == [one.joined(two) for one, two in pairs]


async def test_refusals_of_one_statement_join_as_those_of_several_do(database: Database) -> None:
    pairs = list(product(REFUSALS, repeat=2))
    addresses = [Registrant("org_1", "test", phone=f"+55119{serial:08}") for serial in range(len(pairs))]
    both = [(address, refusal) for address, pair in zip(addresses, pairs, strict=True) for refusal in pair]
    await opt_outs.enter(database, both)
    assert await opt_outs.entries(database, addresses) == [one.joined(two) for one, two in pairs]


async def test_phone_and_address_are_one_refusal(database: Database) -> None:
    by_phone, by_email = (
        Registrant("org_1", "test", phone="+5511987654321"),
        Registrant("org_1", "test", email="a@example.com"),
    )
    own, operators = OptOutEntry(FIRST + timedelta(days=1), "inbound_keyword"), OptOutEntry(FIRST, "call centre")
    await opt_outs.enter(database, [(by_phone, own), (by_email, operators)])
    both = Registrant("org_1", "test", by_phone.phone, by_email.email)
    assert await opt_outs.entries(database, [both]) == [OptOutEntry(own.at, "call centre")]
