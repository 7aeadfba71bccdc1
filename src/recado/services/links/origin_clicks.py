"""Opens origin links (C27.4): each person gets a code, which is stored before the chat opens.

The chat opens in any case: without a code where none can be stored in time, as the way that somebody came is worth
less than that they come.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

import orjson
import structlog

from recado.channels.core.adapters import OpenerFor
from recado.domain.core.clock import Clock
from recado.domain.links.codes import RandomBytes, is_link_code, origin_code
from recado.domain.links.origin import opening_text, origin
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Database
from recado.storage.links import origin_links
from recado.storage.links.code_lookup import CodeLookup
from recado.storage.links.origin_links import OriginCode, OriginLink
from recado.storage.senders.numbers import NumberDirectory

TRIES: Final = 3  # a number may have the code already: one in a billion codes
WAITING_FOR: Final = 2.0  # seconds that a person waits for a database that is away
MOST_WAITING: Final = 2_000  # clicks
TOLD_EVERY: Final = 60.0  # seconds between two lines of the log about clicks without a code

log = structlog.get_logger(__name__)


class OriginClick(NamedTuple):
    """A link that a person opened, who gets a code. `labels`: what its address said besides."""

    link: OriginLink
    labels: Mapping[str, str]


class OriginClicks:
    """A service (`start`, `stop`). `uncoded`: clicks that got no code, since the start."""

    def __init__(
        self,
        db: Database,
        *,
        numbers: NumberDirectory,
        opener_for: OpenerFor,
        clock: Clock,
        random_bytes: RandomBytes,
    ) -> None:
        self._db = db
        self._numbers = numbers
        self._opener_for = opener_for
        self._clock = clock
        self._random_bytes = random_bytes
        self.uncoded = 0
        self._told = (0, float("-inf"))  # uncoded then, and when (monotonic)
        self._links: CodeLookup[OriginLink] = CodeLookup(
            "origin links", self._read, owner=attrgetter("organization_id"), clock=clock
        )
        self._codes: Batcher[OriginClick, str | None] = Batcher(
            "origin codes", self._store, clock=clock, concurrency=1, max_queue=MOST_WAITING, deadline=WAITING_FOR,
            owner=lambda click: click.link.organization_id,
        )  # fmt: skip

    async def start(self) -> None:
        await self._links.start()
        await self._codes.start()

    async def stop(self) -> None:
        await self._codes.stop()
        await self._links.stop()

    def changed(self, link: OriginLink) -> None:
        """A link was made, changed or deleted, and that is committed."""
        self._links.forget(link.slug)

    async def open(self, slug: str, labels: Mapping[str, str], *, counted: bool) -> str | None:
        """Where the link leads; None: there is none. `counted`: a person opens it, who gets a code."""
        link = await self._links.get(slug) if is_link_code(slug) else None
        if link is None:
            return None
        number = await self._numbers.get((link.organization_id, link.env, link.number_id))
        opener = self._opener_for(link.env)
        if number is None or opener is None:
            return None
        code = await self._code(OriginClick(link, labels)) if counted else None
        return opener.open_chat_url(number.display_phone, link.text if code is None else opening_text(link.text, code))

    async def _code(self, click: OriginClick) -> str | None:
        trouble: Exception | None = None
        try:
            code = await self._codes.put(click)
        except Exception as error:  # noqa: BLE001 - whatever it is: the person is led on
            code, trouble = None, error
        if code is None:
            self._count_uncoded(trouble)
        return code

    def _count_uncoded(self, trouble: Exception | None) -> None:
        self.uncoded += 1
        told, at = self._told
        now = self._clock.monotonic()
        if now - at >= TOLD_EVERY:
            self._told = (self.uncoded, now)
            error = None if trouble is None else type(trouble).__name__
            log.warning(
                "origin_links_without_code", since_last=self.uncoded - told, since_start=self.uncoded, error=error
            )

    async def _read(self, slugs: Sequence[str]) -> Mapping[str, OriginLink]:
        return await origin_links.by_slug(self._db.hot, slugs)

    async def _store(self, batch: Sequence[OriginClick]) -> list[str | None]:
        """A code for each, and the count of the links, in one commit."""
        codes: dict[int, str] = {}
        without = dict(enumerate(batch))
        async with self._db.hot.transaction() as connection:
            await origin_links.count_clicks(connection, [click.link for click in batch])
            for _ in range(TRIES):
                drawn = {code.key: (place, code) for place, code in self._drawn(without)}
                stored = await origin_links.store_codes(connection, [code for _, code in drawn.values()])
                for place, code in (drawn[key] for key in stored):
                    codes[place] = code.code
                    del without[place]
                if not without:
                    break
        return [codes.get(place) for place in range(len(batch))]

    def _drawn(self, clicks: Mapping[int, OriginClick]) -> Iterator[tuple[int, OriginCode]]:
        now = self._clock.now()
        for place, (link, labels) in clicks.items():
            code = origin_code(self._random_bytes)
            told = orjson.dumps(origin(link.fonte, link.fonte_rotulo, labels, code)).decode()
            yield place, OriginCode(link.organization_id, link.number_id, code, told, now)
