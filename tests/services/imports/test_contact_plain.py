"""The short way of an import writes what the long one writes, whoever else is there already (C12.7)."""

import io
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from tests.examples import seeds

from recado.domain.contacts.consent import OptOutEntry
from recado.domain.contacts.contact_import import ImportFormat, ImportMode, ImportOptions, MatchBy
from recado.domain.core.ids import CONTACT_IMPORT, ORGANIZATION, IdSource
from recado.engine.clock import SystemClock
from recado.services.contacts.consents import Consents
from recado.services.effects.consequences import Consequences
from recado.services.imports import contact_block
from recado.services.imports.contact_block import may_be_plain, split_plain
from recado.services.imports.contact_imports import ContactImports, Draft
from recado.services.imports.contact_rows import ContactRow
from recado.storage.contacts import opt_outs
from recado.storage.contacts.documents import DocumentCipher
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing

CLOCK = SystemClock()
IDS = IdSource(CLOCK, random.Random(3))
ENVIRONMENT = (ORGANIZATION + "1" * 21, "test")
FILES, ROWS, PEOPLE = 5, 40, 60
TEXTS = (
    "Ana", "João Conceição", "a\tb", "line\nbreak\r", "back\\slash \\N", '"quoted", {x}', "it's", "\u2028 😀", "\\x00",
)  # fmt: skip
ADDRESSES = ("Ana@Example.com", "ana@example.com", "joão@example.com", 'o"b@ex\\ample.com', "out@example.com")
_PEOPLE = "select to_jsonb(c) - '{id,updated_at,birth_date_cipher}'::text[] from contacts c order by phone"
_HISTORY = """
    select c.phone, h.revision, h.from_status, h.to_status, h.at, h.source
    from contact_consents h join contacts c on c.id = h.contact_id
    order by c.phone, h.revision
"""
VALUES: tuple[Any, ...] = (*TEXTS, 1, 1.5, True, None, ["a", "b\\"], [])


def row(chance: random.Random) -> dict[str, Any]:
    """A row of a file; three of four give only plain fields."""
    found: dict[str, Any] = {"phone": f"+55119{chance.randrange(PEOPLE):08}"}
    if chance.random() < 0.7:
        found["name"] = chance.choice(TEXTS)
    if chance.random() < 0.5:
        found["email"] = chance.choice(ADDRESSES)
    if chance.random() < 0.3:
        found["externalId"] = str(chance.randrange(PEOPLE))
    if chance.random() < 0.5:
        found["tags"] = chance.choices(("vip", "VIP", "São Paulo", "a,b", 'c"d', "back\\"), k=chance.randrange(4))
    if chance.random() < 0.5:
        found["attributes"] = {name: chance.choice(VALUES) for name in chance.choices("abc", k=chance.randrange(3))}
    if chance.random() < 0.25:
        found |= chance.choice((
            {"phone": "nothing"},
            {"externalIds": {"integration_a": "x"}},
            {"optIn": {"status": "granted", "source": "site", "at": "2026-01-01T00:00:00Z"}},
            {"optIn": {"status": "denied", "revokedAt": "2026-02-01T00:00:00Z"}},
            {"birthDate": "1990-01-01"},
            {"tags": [f"tag {number}" for number in range(99)]},
        ))  # fmt: skip
    return found


async def written(database: Database, seed: int, options: Mapping[str, Any]) -> tuple[Any, ...]:
    """What files that a seed draws leave behind, in a database without contacts."""
    chance = random.Random(seed)
    await database.execute("truncate contacts, contact_consents, opt_outs, contact_imports")
    moment = datetime(2025, 1, 1, tzinfo=UTC)
    one_phone, one_address = "+5511900000007", ADDRESSES[-1]
    registered = [
        opt_outs.Registrant(*ENVIRONMENT, phone=one_phone),
        opt_outs.Registrant(*ENVIRONMENT, email=one_address),
    ]
    async with database.transaction() as connection:
        if seed % 3:
            await opt_outs.enter(connection, [(address, OptOutEntry(moment, "site")) for address in registered])
    documents = DocumentCipher(KeyRing.parse("test:" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="), b"i" * 32)
    consents = Consents(IDS, Consequences(), lambda _: None, documents.keys)
    imports = ContactImports(database, ids=IDS, documents=documents, consents=consents, clock=CLOCK)
    results = []
    for _ in range(FILES):
        lines = b"\n".join(orjson.dumps(row(chance)) for _ in range(ROWS))
        draft = Draft(*ENVIRONMENT, IDS.new(CONTACT_IMPORT), ImportFormat.NDJSON, AuditPrincipal("key", "key_1"))
        found = await imports.accept(draft, io.BytesIO(lines), lambda _: ImportOptions(**options))
        counts = (found.created, found.updated, found.unchanged, found.failed, found.consent_ignored)
        results.append((found.status, counts, found.errors))
    people = await database.fetch(_PEOPLE)
    history = await database.fetch(_HISTORY)
    registry = await database.fetch("select kind, hash, at, source from opt_outs order by kind, hash")
    return results, *([tuple(each) for each in found] for found in (people, history, registry))


@pytest.mark.parametrize("seed", seeds(6))
@pytest.mark.parametrize("options", [{}, {"mode": ImportMode.CREATE, "tags": ("vip", "new")}], ids=["upsert", "create"])
async def test_both_ways_write_the_same(
    database: Database, monkeypatch: pytest.MonkeyPatch, seed: int, options: dict[str, Any]
) -> None:
    short = await written(database, seed, options)
    monkeypatch.setattr(contact_block, "may_be_plain", lambda _: False)
    long = await written(database, seed, options)
    assert short == long
    assert len(short[1]) > PEOPLE / 2


def rows(*given: dict[str, Any]) -> list[ContactRow]:
    return [ContactRow(number, values) for number, values in enumerate(given, start=1)]


def test_rows_of_known_contacts_and_rows_that_meet_are_not_plain() -> None:
    found = rows(
        {"phone": "+5511900000001", "name": "Ana", "attributes": {"a": 1}},
        {"phone": "+5511900000002"},
        {"phone": "+5511900000003"},
        {"phone": "+5511900000003"},
        {"phone": "+5511900000004", "external_id": "1"},
        {"phone": "+5511900000005", "external_id": "1"},
        {"phone": "+5511900000006", "external_id": "2"},
        {"phone": "+5511900000007", "company_id": "emp_1"},
        {"phone": "+5511900000008", "added_tags": tuple(map(str, range(101)))},
    )
    plain, others = split_plain(found, {"+5511900000002"})
    assert [each.number for each in plain] == [1, 7]
    assert [each.number for each in others] == [2, 3, 4, 5, 6, 8, 9]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (ImportOptions(), True),
        (ImportOptions(mode=ImportMode.CREATE, tags=("a",), list_id="lst_1"), True),
        (ImportOptions(mode=ImportMode.UPDATE), False),
        (ImportOptions(match_by=MatchBy.EXTERNAL_ID), False),
        (ImportOptions(emit_events=True), False),
    ],
)
def test_an_import_that_asks_for_more_takes_the_long_way(options: ImportOptions, expected: bool) -> None:
    assert may_be_plain(options) is expected
