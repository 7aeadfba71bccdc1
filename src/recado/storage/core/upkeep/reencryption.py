"""Writes stored values again with the first key of the ring, so that an older key can be removed (C30.1).

In blocks, each in a statement of its own, beside a running service. Whatever interrupts it, what was written stays
written, and the next run finds only the rest.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import orjson

from recado.storage.core.crypto import KeyRing, Tampered
from recado.storage.core.statements.rows import Executor, affected, columns
from recado.storage.core.statements.sql import load

SQL = load("reencryption")

BLOCK = 500  # rows


class CipherForm(Enum):
    """What a column holds: the value itself, or JSON of this type."""

    VALUE = "text"
    HISTORY = "jsonb"
    """A list of attempts, of which some have an `answerCipher`."""
    MEMBER = "json"
    """The data of an event, of which some have a member `sealed`."""


_STALE: Final = {
    CipherForm.VALUE: SQL.stale,
    CipherForm.HISTORY: SQL.stale_history,
    CipherForm.MEMBER: SQL.stale_member,
}
# Of JSON as it was written there is no equality: it is compared as the text that it is.
_COMPARED: Final = {CipherForm.VALUE: "", CipherForm.HISTORY: "", CipherForm.MEMBER: "::text"}


@dataclass(frozen=True, slots=True)
class Place:
    """A column that holds encrypted values. `keys`: of its table; the last one names the record.

    `field`: what the values are bound to. `form`: how the column holds them.
    """

    table: str
    keys: tuple[str, ...]
    column: str
    field: str
    form: CipherForm = CipherForm.VALUE

    def sql(self, text: str, **names: str) -> str:
        """A statement for this place."""
        stale = _STALE[self.form].format(column=self.column)
        return text.format(table=self.table, column=self.column, keys=", ".join(self.keys), stale=stale, **names)


@dataclass(frozen=True, slots=True)
class ReencryptedBlock:
    """What was done with some rows. `damaged`: organization and record of values that fail authentication."""

    written: int
    damaged: tuple[tuple[str, str], ...]


async def count(executor: Executor, place: Place, keys: KeyRing) -> int:
    """How many rows hold a value that another key than the first one encrypted."""
    return int(await executor.fetchval(place.sql(SQL.count), keys.prefix))


async def rewrite(executor: Executor, place: Place, keys: KeyRing) -> AsyncIterator[ReencryptedBlock]:
    """Write the values of the place again, a block at a time."""
    after = [""] * len(place.keys)
    parameters = ", ".join(f"${number}" for number in range(2, 2 + len(after)))
    read = place.sql(SQL.block, after=parameters, limit=str(BLOCK))
    while rows := await executor.fetch(read, keys.prefix, *after):
        after = [rows[-1][key] for key in place.keys]
        fresh: list[tuple[Any, ...]] = []
        damaged: list[tuple[str, str]] = []
        for row in rows:
            organization_id, record_id = row["organization_id"], row[place.keys[-1]]
            try:
                value = _anew(place, row["stored"], keys, organization_id, record_id)
            except Tampered:
                damaged.append((organization_id, record_id))
                continue
            fresh.append((*(row[key] for key in place.keys), _plain(row["stored"]), _plain(value)))
        yield ReencryptedBlock(await _write(executor, place, fresh), tuple(damaged))


async def _write(executor: Executor, place: Place, fresh: Sequence[tuple[Any, ...]]) -> int:
    if not fresh:
        return 0
    kinds = [*(["text"] * len(place.keys)), *([place.form.value] * 2)]
    arrays = ", ".join(f"${number}::text[]::{kind}[]" for number, kind in enumerate(kinds, start=1))
    same = " and ".join(f"t.{key} = new.{key}" for key in place.keys)
    write = place.sql(SQL.write, arrays=arrays, same=same, compared=_COMPARED[place.form])
    return affected(await executor.execute(write, *columns(fresh, len(kinds))))


def _anew(place: Place, stored: Any, keys: KeyRing, organization_id: str, record_id: str) -> Any:
    def again(cipher: str) -> str:
        where = {"organization_id": organization_id, "record_id": record_id, "field": place.field}
        return keys.encrypt(keys.decrypt(cipher, **where), **where)

    if place.form is CipherForm.VALUE:
        return again(stored)
    if place.form is CipherForm.MEMBER:
        data = orjson.loads(stored)
        return data | {"sealed": again(data["sealed"])}
    return [
        {**attempt, "answerCipher": again(attempt["answerCipher"])} if "answerCipher" in attempt else attempt
        for attempt in stored
    ]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
