"""The contacts of an audience as a dry run sees them: those as one whom the journey does not tell apart (C9.17)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from sys import getsizeof
from typing import Any, Final

import orjson

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.contacts.contact import Contact
from recado.domain.core.phones import other_spellings
from recado.domain.journeys.field_values import ATTRIBUTES, CONSENT, OF_CONTACT
from recado.storage.audience.segment_evaluation import Evaluation, over
from recado.storage.batches.audiences import Audience
from recado.storage.contacts import opt_outs
from recado.storage.contacts.contacts import WIDE
from recado.storage.contacts.opt_outs import Registrant
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.compose import compose
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import fragments
from recado.storage.core.statements.wide_rows import SQL as WIDE_ROWS

SQL: Final = fragments("simulation_facts")

BLOCK: Final = 2_000  # contacts in one look
BLOCK_BYTES: Final = 2**20  # of what is looked at in them, as JSON
STORED_BYTES: Final = 2**23  # of the columns that hold it; packed ones count as what they may become
KIND_BYTES: Final = 1_100  # that a kind takes when nothing is looked at, about
VALUE_BYTES: Final = 110  # that each value takes beside its characters, about
_MADE_FROM_ID: Final = "created_at"
_STAND_IN: Final = {True: "+55", False: "+1"}  # what tells the region of contacts whose phones nothing looks at
_NOT_READ: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class FoundKind:
    """Contacts of a block whom the journey does not tell apart. `contact` holds what it looks at, and nothing else.

    `recent`: when journeys wrote to them, to the hour. `ids`: some of theirs. `size`: bytes that it takes, about.
    """

    contact: Contact
    registered: bool
    recent: tuple[datetime, ...]
    count: int
    ids: Sequence[str]
    size: int


@dataclass(frozen=True, slots=True)
class LookedAt:
    """What a journey looks at: `fields` of contacts; `recent`: how many messages after which moment, for its cap."""

    fields: Sequence[str]
    recent: tuple[datetime, int] | None = None


class AudienceFacts:
    """Those of an audience, or of contacts by their ids, block after block. Reads raise `Unavailable`."""

    def __init__(
        self,
        db: Database,
        evaluation: Evaluation,
        *,
        organization_id: str,
        env: str,
        people: Audience | Sequence[str],
        looked: LookedAt,
        now: datetime,
    ) -> None:
        self._db = db
        self._evaluation = evaluation
        self._where = (organization_id, env)
        self._people = people
        self._looked = looked
        self._names = {field: field.removeprefix(ATTRIBUTES) for field in looked.fields if field.startswith(ATTRIBUTES)}
        self._now = now
        self._anyone: bool | None = None  # is in the opt-out registry
        self._after_id = ""
        self._ended = False

    async def rows(self) -> list[Any]:
        """The next block: each row is of contacts whom the journey does not tell apart; none at the end."""
        if self._ended:
            return []
        if self._anyone is None:
            self._anyone = await self._db.searches.fetchval(opt_outs.SQL.anyone_opted_out, *self._where)
        sql, arguments = self._query(registry=bool(self._anyone))
        rows = await self._evaluation.rows(self._where[0], sql, arguments)
        read, page = sum(row["contacts"] for row in rows), max((row["page_rows"] for row in rows), default=0)
        self._ended = read == page < BLOCK
        self._after_id = max((row["last_id"] for row in rows), default="")
        return rows

    async def kinds(self, rows: Sequence[Any]) -> list[FoundKind]:
        """What some rows of a block tell, each in some 15 µs."""
        found = [_kind(row, *self._where, self._looked.fields, self._names) for row in rows]
        return await _respelt(self._db, found, [row["asked"] for row in rows])

    def _query(self, *, registry: bool) -> tuple[str, list[Any]]:
        columns, values = _columns(self._looked.fields, self._names)
        recent = self._looked.recent
        text = (
            SQL.kinds.replace("{registered}", SQL.registered if registry else "false")
            .replace("{asked}", SQL.asked if registry else "null::text")
            .replace("{recent}", "null::timestamptz[]" if recent is None else SQL.recent)
            .replace("{stored}", self._stored())
            .replace("{held}", f"jsonb_build_array({', '.join(columns)})::text")
        )
        values |= {"limit": BLOCK, "after_id": self._after_id, "most_held": BLOCK_BYTES, "most_stored": STORED_BYTES}
        if recent is not None:
            values |= {"recent_after": recent[0], "most": recent[1]}
        if isinstance(self._people, Audience):
            sources = (text.replace("{source}", SQL.of_list), text.replace("{source}", SQL.of_segment))
            return over(self._people, *sources, *self._where, self._now, **values)
        organization_id, env = self._where
        named = {"organization_id": organization_id, "env": env, "ids": list(self._people), **values}
        return compose(text.replace("{source}", SQL.of_ids), named)

    def _stored(self) -> str:
        """The width of the columns that may hold much, of those that are looked at."""
        looked = {"attributes" if field in self._names else OF_CONTACT.get(field) for field in self._looked.fields}
        return " + ".join(WIDE_ROWS.width.replace("{column}", column) for column in WIDE if column in looked) or "0"


def _columns(fields: Sequence[str], names: Mapping[str, str]) -> tuple[list[str], dict[str, Any]]:
    """What is selected for each field, and the names of attributes among the values."""
    columns: list[str] = []
    keys: dict[str, Any] = {}
    for place, field in enumerate(fields):
        if field in names:
            keys[f"key_{place}"] = names[field]
            columns.append(f"c.attributes -> :key_{place}::text")
        elif field == CONSENT:
            columns.append("null")
        else:
            column = OF_CONTACT[field]
            columns.append("c.id" if column == _MADE_FROM_ID else f"c.{column}")
    return columns, keys


def _kind(
    row: Mapping[str, Any], organization_id: str, env: str, fields: Sequence[str], names: Mapping[str, str]
) -> FoundKind:
    """`names`: of the attributes among the fields, the same texts for all."""
    columns: dict[str, Any] = {"phone": _STAND_IN[row["brazilian"]]}
    attributes: dict[str, Any] = {}
    held, recent = row["held"], tuple(row["recent"] or ())
    for field, value in zip(fields, orjson.loads(held), strict=True):
        if field in names:
            attributes[names[field]] = value
        elif field != CONSENT and OF_CONTACT[field] != _MADE_FROM_ID:
            columns[OF_CONTACT[field]] = _as_read(OF_CONTACT[field], value)
    contact = Contact(
        organization_id=organization_id, env=env, id=row["ids"][0], phone_hash=b"", attributes=attributes,
        opt_in_status=ConsentStatus(row["opt_in_status"]), updated_at=_NOT_READ, **columns,
    )  # fmt: skip
    # A text takes as much for each character as its widest one does, and those of a list are values, too.
    size = KIND_BYTES + getsizeof(held) + VALUE_BYTES * (held.count(", ") + len(recent))
    return FoundKind(contact, row["registered"], recent, row["contacts"], row["ids"], size)


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
