"""What tests of imports begin with: files that are handed in, and what became of their rows."""

from typing import Any

import orjson

JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"


async def hand_in(api: Any, content: bytes, media_type: str, query: str = "", **how: Any) -> Any:
    headers = {**how.pop("headers", {}), "Content-Type": media_type}
    return await api.call("POST", f"/contacts/import{query}", raw=content, headers=headers, **how)


async def imported(api: Any, rows: Any, query: str = "", **how: Any) -> Any:
    """The result of a file of NDJSON, or of CSV when `rows` is a text."""
    content, media_type = (
        (rows.encode(), CSV) if isinstance(rows, str) else (b"\n".join(map(orjson.dumps, rows)), NDJSON)
    )
    answer = await hand_in(api, content, media_type, query, **how)
    assert answer.status == 200, answer.body
    return answer.body


def counts(result: Any) -> dict[str, int]:
    """What became of the rows; the counts that are not 0."""
    names = ("created", "updated", "unchanged", "failed", "consentIgnored")
    return {name: result[name] for name in names if result[name]}


def phone(serial: int) -> str:
    return f"+55119{serial:08}"


async def contacts(api: Any, **how: Any) -> dict[str, Any]:
    """All of the environment by phone."""
    answer = await api.get("/contacts?limit=200", **how)
    return {item["phone"]: item for item in answer.body["items"]}


async def contact(api: Any, number: str = phone(1)) -> Any:
    return (await contacts(api))[number]


async def nothing_is_stored(api: Any) -> bool:
    tables = ("contacts", "contact_imports", "contact_import_blocks")
    return not any([await api.database.fetchval(f"select count(*) from {table}") for table in tables])
