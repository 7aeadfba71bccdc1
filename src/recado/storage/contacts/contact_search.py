"""What a search demands of a contact, as SQL (C12.1), and whether this server finds words inside words."""

from collections.abc import Sequence
from typing import Any

from recado.domain.contacts.contact_search import Inside, SearchTerm
from recado.storage.core.compose import compose
from recado.storage.core.rows import Executor
from recado.storage.core.sql import fragments

SQL = fragments("contact_search")


class ContactSearch:
    """A service (`start`, `stop`): at its start it learns which words the server finds inside words."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.inside = Inside.NONE

    async def start(self) -> None:
        found = await self._executor.fetchval(SQL.inside)
        self.inside = Inside.NONE if found is None else Inside(found)

    async def stop(self) -> None:
        """Nothing runs."""


def condition(terms: Sequence[SearchTerm]) -> tuple[str, list[Any]]:
    """What all the terms demand of a contact `c`: a text with `$1`, `$2`, … and the arguments in that order."""
    arguments: list[Any] = []

    def said(fragment: str, **value: str) -> str:
        nonlocal arguments
        text, arguments = compose(fragment, value, arguments)
        return text

    def demanded(term: SearchTerm) -> str:
        words = [said(SQL.if_inside, expression=each) for each in term.inside]
        if term.beginnings is not None:
            words.append(said(SQL.if_begins, query=term.beginnings))
        text = "\nand ".join(words)
        if term.phone is None:
            return text
        phone = said(SQL.if_begins, query=term.phone)
        return f"({text}\nor {phone})" if words else phone

    return "\nand ".join(map(demanded, terms)), arguments
