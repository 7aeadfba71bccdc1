"""Pages of messages, newest first: of the generic list, and of those that one channel has (C5.1)."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from recado.http.api.call import Call
from recado.http.api.page_items import PageItems, each
from recado.http.api.paging import Cursors, MessagePageQuery
from recado.http.routes.core.lists import shown
from recado.http.wire.reply import Reply
from recado.storage.core.connections.postgres import Database
from recado.storage.messages import message_reads
from recado.storage.messages.message_reads import Message, MessageFilter, MessagePage


class MessagePages:
    """The answers of the list `name`, each message as the `view` of a call shows it."""

    def __init__(
        self,
        database: Database,
        cursors: Cursors,
        *,
        name: str,
        view: Callable[[Call], Callable[[Message], dict[str, Any]]],
    ) -> None:
        self._database = database
        self._cursors = cursors
        self._name = name
        self._view = view

    async def page(self, call: Call, wanted: Callable[[Call, Any], MessageFilter]) -> Reply:
        """The page that the query of the call asks for, of what is `wanted` by it."""
        query: MessagePageQuery = call.query
        after = self._cursors.read(call, self._name)  # first: of a cursor with other filters, that alone is told
        skip = query.skip if after is None else 0
        read = partial(message_reads.list_page, self._database.page(skip), wanted(call, query))

        def rest(last: Message, left: int) -> Awaitable[MessagePage]:
            return read(limit=left, before_id=last.id, counted=False)

        first = await read(limit=query.limit, skip=skip, before_id=None if after is None else after[0])
        return await shown(
            PageItems(first, each(self._view(call)), rest, query.limit),
            cursor=lambda last: self._cursors.write(call, self._name, [last.id]),
            ends_early=after is not None,
        )
