"""The contacts of an audience as a dry run sees them: those as one whom the journey does not tell apart (C9.17)."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.contacts.contact import Contact
from recado.domain.core.phones import other_spellings
from recado.domain.journeys.field_values import ATTRIBUTES, CONSENT, OF_CONTACT
from recado.storage.audience.segment_evaluation import Evaluation, over
from recado.storage.batches.audiences import Audience
from recado.storage.contacts import opt_outs
from recado.storage.contacts.opt_outs import Registrant
from recado.storage.core.compose import compose
from recado.storage.core.postgres import Database
from recado.storage.core.rows import Executor
from recado.storage.core.sql import fragments

SQL: Final = fragments("simulation_facts")

BLOCK: Final = 2_000  # contacts in one look: some milliseconds of the event loop, however many kinds they are of
_MADE_FROM_ID: Final = "created_at"
_STAND_IN: Final = {True: "+55", False: "+1"}  # what tells the region of contacts whose phones nothing looks at
_NOT_READ: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class FoundKind:
    """Contacts of a block whom the journey does not tell apart. `contact` holds what it looks at, and nothing else.

    `recent`: when journeys wrote to them, to the hour. `ids`: some of theirs. `size`: characters of what is held.
    """

    contact: Contact
    registered: bool
    recent: tuple[datetime, ...]
    count: int
    ids: Sequence[str]
    size: int


@dataclass(frozen=True, slots=True)
class Looked:
    """What a journey looks at: `fields` of contacts; `recent`: how many messages after which moment, for its cap."""

    fields: Sequence[str]
    recent: tuple[datetime, int] | None = None


async def blocks(
    db: Database,
    evaluation: Evaluation,
    organization_id: str,
    env: str,
    audience: Audience | Sequence[str],
    looked: Looked,
    now: datetime,
) -> AsyncIterator[list[FoundKind]]:
    """Block after block of an audience, or of contacts by their ids. Raises `Unavailable`."""
    anyone = await db.searches.fetchval(opt_outs.SQL.anyone_opted_out, organization_id, env)
    columns, keys = _columns(looked.fields)
    text = (
        SQL.kinds.replace("{registered}", SQL.registered if anyone else "false")
        .replace("{asked}", SQL.asked if anyone else "null::text")
        .replace("{recent}", "null::timestamptz[]" if looked.recent is None else SQL.recent)
        .replace("{held}", f"jsonb_build_array({', '.join(columns)})::text")
    )
    values: dict[str, Any] = {**keys, "limit": BLOCK}
    if looked.recent is not None:
        values |= {"recent_after": looked.recent[0], "most": looked.recent[1]}
    after_id = ""
    while True:
        values["after_id"] = after_id
        if isinstance(audience, Audience):
            sources = (text.replace("{source}", SQL.of_list), text.replace("{source}", SQL.of_segment))
            sql, arguments = over(audience, *sources, organization_id, env, now, **values)
        else:
            named = {"organization_id": organization_id, "env": env, "ids": list(audience), **values}
            sql, arguments = compose(text.replace("{source}", SQL.of_ids), named)
        rows = await evaluation.rows(organization_id, sql, arguments)
        found = [_kind(row, organization_id, env, looked.fields) for row in rows]
        yield await _respelt(db, found, [row["asked"] for row in rows])
        if sum(kind.count for kind in found) < BLOCK:
            return
        after_id = max(row["last_id"] for row in rows)


def _columns(fields: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """What is selected for each field, and the names of attributes among the values."""
    columns, keys = [], {}
    for place, field in enumerate(fields):
        if field.startswith(ATTRIBUTES):
            keys[f"key_{place}"] = field.removeprefix(ATTRIBUTES)
            columns.append(f"c.attributes -> :key_{place}::text")
        elif field == CONSENT:
            columns.append("null")
        else:
            column = OF_CONTACT[field]
            columns.append("c.id" if column == _MADE_FROM_ID else f"c.{column}")
    return columns, keys


def _kind(row: Mapping[str, Any], organization_id: str, env: str, fields: Sequence[str]) -> FoundKind:
    columns: dict[str, Any] = {"phone": _STAND_IN[row["brazilian"]]}
    attributes: dict[str, Any] = {}
    for field, value in zip(fields, orjson.loads(row["held"]), strict=True):
        if field.startswith(ATTRIBUTES):
            attributes[field.removeprefix(ATTRIBUTES)] = value
        elif field != CONSENT and OF_CONTACT[field] != _MADE_FROM_ID:
            columns[OF_CONTACT[field]] = _as_read(OF_CONTACT[field], value)
    contact = Contact(
        organization_id=organization_id, env=env, id=row["ids"][0], phone_hash=b"", attributes=attributes,
        opt_in_status=ConsentStatus(row["opt_in_status"]), updated_at=_NOT_READ, **columns,
    )  # fmt: skip
    return FoundKind(
        contact, row["registered"], tuple(row["recent"] or ()), row["contacts"], row["ids"], len(row["held"])
    )


def _as_read(column: str, value: Any) -> Any:
    """A value of a column, of JSON."""
    if column == "last_interaction_at" and value is not None:
        return datetime.fromisoformat(value)
    return tuple(value) if isinstance(value, list) else value


async def _respelt(db: Database, found: list[FoundKind], asked: Sequence[str | None]) -> list[FoundKind]:
    """The same, where the registry may know a phone by another spelling of it (C12.5.8)."""
    places = [place for place, phone in enumerate(asked) if phone is not None and other_spellings(phone)]
    registrants = [
        Registrant(found[place].contact.organization_id, found[place].contact.env, asked[place]) for place in places
    ]
    entries = await opt_outs.entries(db.searches, registrants)
    for place, entry in zip(places, entries, strict=True):
        if entry is not None:
            found[place] = replace(found[place], registered=True)
    return found


async def addressed(
    executor: Executor, organization_id: str, number_id: str, after: datetime
) -> list[tuple[datetime, int]]:
    """How many recipients a number with a limited tier addressed last in which minute, after that moment."""
    values = {"organization_id": organization_id, "number_id": number_id, "after": after}
    sql, arguments = compose(SQL.addressed, values)
    return [(row["at"], row["recipients"]) for row in await executor.fetch(sql, *arguments)]
