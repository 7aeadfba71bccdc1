"""Loads SQL by name from the `.sql` file beside a module: each statement stands under a line `-- name: insert_batch`.

Read once, at import of the aggregate's module: a misspelt name fails when the program starts, not when a request comes.

A statement numbers its parameters, `$1`, and is given as a text: `fetch(SQL.by_id, organization_id, env, id)`. One that
has many names them, `:phone`, and is given with its values: `fetch(*SQL.bind("save", after, now=now))`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

FILES = {path.stem: path for path in Path(__file__).parents[2].rglob("*.sql") if path.parent.name != "migrations"}
_NAME = re.compile(r"^-- name:[ \t]*(\S*)[ \t]*$", re.MULTILINE)
_COMMENTS = re.compile(r"^\s*--.*$", re.MULTILINE)
_NUMBERED = re.compile(r"\$\d")
_TOKEN = re.compile(
    r"""
    (?<!\w)[eE]'(?:[^'\\]|\\.|'')*'      # a text with escapes
    | '(?:[^']|'')*' | "(?:[^"]|"")*"    # a text, a quoted name
    | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$
    | --[^\n]* | /\*.*?\*/
    | :[:=]                              # of a cast, of a named argument
    | :(?P<name>[a-z_][a-z0-9_]*)
    """,
    re.VERBOSE | re.DOTALL,
)


class Queries:
    """The statements of one aggregate, each an attribute as the server is given it: its parameters have numbers."""

    __slots__ = ("_aggregate", "_as_written", "_parameters", "_statements", "_texts")

    def __init__(self, aggregate: str, statements: Mapping[str, str], *, as_written: bool = False) -> None:
        """`as_written`: the attributes are fragments for `compose`, with their names.

        Raises ValueError for a statement that numbers some of its parameters and names others.
        """
        found = {name: numbered(text) for name, text in statements.items()}
        self._aggregate = aggregate
        self._statements = dict(statements)
        self._as_written = as_written
        self._texts = self._statements if as_written else {name: text for name, (text, _) in found.items()}
        self._parameters = {name: _Parameters(name, text, names) for name, (text, names) in found.items() if names}
        for name in self._parameters:
            if _NUMBERED.search(_TOKEN.sub("", statements[name])):
                raise ValueError(f"{aggregate}.sql: {name} names some of its parameters and numbers others")

    def __getattr__(self, name: str) -> str:
        try:
            return self._texts[name]
        except KeyError:
            raise AttributeError(f"{self._aggregate}.sql holds no statement named {name!r}") from None

    def __dir__(self) -> list[str]:
        return sorted(self._texts)

    def before(self, others: Mapping[str, str]) -> "Queries":
        """These statements, and those of the others whose names are not among them."""
        return Queries(self._aggregate, {**others, **self._statements}, as_written=self._as_written)

    def bind(self, statement: str, record: object = None, /, **values: Any) -> tuple[Any, ...]:
        """The text of a statement that names its parameters, and their values in its order.

        Those that are not among `values` are the attributes of `record` with their names. Raises TypeError when one is
        missing, or too many are given.
        """
        return self._parameters[statement].bound(record, values)


class _Parameters:
    """A statement with the names of its parameters, in the order of their numbers."""

    __slots__ = ("_name", "_names", "_pick", "_text")

    def __init__(self, name: str, text: str, names: tuple[str, ...]) -> None:
        self._name = name
        self._text = text
        self._names = names
        self._pick: Callable[[Mapping[str, Any]], Iterable[Any]] = (
            itemgetter(*names) if len(names) > 1 else lambda values: (values[names[0]],)
        )

    def bound(self, record: object, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """The text, and the values."""
        if record is not None and len(values) < len(self._names):
            values = {**{name: getattr(record, name) for name in self._names if name not in values}, **values}
        try:
            found = (self._text, *self._pick(values))
        except KeyError as missing:
            raise TypeError(f"{self._name} lacks its parameter {missing}") from None
        if len(values) > len(self._names):
            raise TypeError(f"{self._name} has no parameters {sorted(values.keys() - set(self._names))}")
        return found


@cache
def load(aggregate: str, **lists: str) -> Queries:
    """The statements of `<aggregate>.sql`. `lists`: what stands in place of `{name}` in them, such as many columns.

    Raises KeyError where there is no such file, or ValueError for a malformed one.
    """
    return Queries(aggregate, _read(aggregate, lists))


@cache
def fragments(aggregate: str, **lists: str) -> Queries:
    """The texts of `<aggregate>.sql` as they stand there, for `compose` to put queries together; as `load`."""
    return Queries(aggregate, _read(aggregate, lists), as_written=True)


def _read(aggregate: str, lists: Mapping[str, str]) -> dict[str, str]:
    path = FILES[aggregate]
    text = path.read_text(encoding="utf-8")
    for name, listed in lists.items():
        text = text.replace(f"{{{name}}}", listed)
    return parse(text, path.name)


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


@lru_cache(maxsize=1_000)
def numbered(text: str, before: int = 0) -> tuple[str, tuple[str, ...]]:
    """The text with `$1`, `$2`, … in place of its names, and the names in that order; one may stand several times.

    `before`: how many parameters it numbers already. Quotes, comments, casts (`::text`) and `:=` stay as they are.
    A slice of an array takes a space: `[1 : n]`.
    """
    places: dict[str, int] = {}

    def number(token: re.Match[str]) -> str:
        name = token["name"]
        return token[0] if name is None else f"${places.setdefault(name, before + len(places) + 1)}"

    return _TOKEN.sub(number, text), tuple(places)
