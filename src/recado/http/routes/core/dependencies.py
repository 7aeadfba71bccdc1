"""What the routes of many records are made with. What those of one record need alone, they take beside it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from recado.domain.core.clock import Clock
from recado.domain.core.ids import IdSource
from recado.domain.messages.changes import OnChange
from recado.http.api.paging import Cursors
from recado.storage.access.directories import Directories
from recado.storage.billing.prices import PriceDirectory
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.messages.message_reads import Message

Explain = Callable[[str, str, Message], Awaitable[Mapping[str, Any] | None]]
"""Why a message waits, by its organization and environment (C14.6); None: it is leaving."""


async def _unexplained(organization_id: str, env: str, message: Message) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """Made once. `random_bytes`: unpredictable ones; `changed`: told after the commit of what others hold a copy of.

    `prices` None: nothing is billed (C25.2.4). `link_base`: the address of short links, without a slash at its end.
    `explain`: where lanes can be asked.
    """

    database: Database
    ids: IdSource
    clock: Clock
    keys: KeyRing
    cursors: Cursors
    random_bytes: Callable[[int], bytes]
    directories: Directories
    changed: OnChange
    prices: PriceDirectory | None = None
    link_base: str = ""
    explain: Explain = _unexplained
