"""Loads SQL by name from the `.sql` file beside a module: each statement stands under a line `-- name: insert_batch`.

Read once, at import of the aggregate's module: a misspelt name fails when the program starts, not when a request comes.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FILES = {path.stem: path for path in Path(__file__).parent.parent.glob("*/*.sql") if path.parent.name != "migrations"}
_NAME = re.compile(r"^-- name:[ \t]*(\S*)[ \t]*$", re.MULTILINE)
_COMMENTS = re.compile(r"^\s*--.*$", re.MULTILINE)


class Queries:
    """The statements of one aggregate, each an attribute that holds its SQL text."""

    __slots__ = ("_aggregate", "_statements")

    def __init__(self, aggregate: str, statements: Mapping[str, str]) -> None:
        self._aggregate = aggregate
        self._statements = dict(statements)

    def __getattr__(self, name: str) -> str:
        try:
            return self._statements[name]
        except KeyError:
            raise AttributeError(f"{self._aggregate}.sql holds no statement named {name!r}") from None

    def __dir__(self) -> list[str]:
        return sorted(self._statements)

    def before(self, others: Mapping[str, str]) -> "Queries":
        """These statements, and those of the others whose names are not among them."""
        return Queries(self._aggregate, {**others, **self._statements})


@cache
def load(aggregate: str) -> Queries:
    """The statements of `<aggregate>.sql`; raises KeyError where there is none, or ValueError for a malformed file."""
    path = FILES[aggregate]
    return Queries(aggregate, parse(path.read_text(encoding="utf-8"), path.name))


def parse(text: str, file_name: str) -> dict[str, str]:
    """Statements by name; ValueError when a name is missing, repeated, no identifier, or has no statement under it."""
    preamble, *parts = _NAME.split(text)
    if _COMMENTS.sub("", preamble).strip():
        raise ValueError(f"{file_name}: SQL stands before the first '-- name:' line")
    statements: dict[str, str] = {}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        if not name.isidentifier() or name.startswith("_"):
            raise ValueError(f"{file_name}: {name!r} cannot name a statement")
        if name in statements:
            raise ValueError(f"{file_name}: two statements are named {name!r}")
        statement = body.strip().removesuffix(";").rstrip()
        if not _COMMENTS.sub("", statement).strip():
            raise ValueError(f"{file_name}: no statement stands under the name {name!r}")
        statements[name] = statement
    return statements
