"""Questions to a process that sends, over its link: what is asked has a number, and so has each part of the answer."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from recado.fronts import frames

LIMIT: Final = 2.0  # seconds
SITUATION: Final = "situation"
"""`[organization, env, channel, sender]`: what holds the sender now."""
TROUBLE: Final = "trouble"
"""Likewise: what keeps it from reaching its provider."""
NUMBER: Final = "number"
"""Likewise: what the process has in memory of it."""
LANE: Final = "lane"
"""Likewise: the kind of its actor."""
RESTART: Final = "restart"
"""Likewise, once it was restarted on an operator's order."""
NUMBERS: Final = "numbers"
"""`null`: all that it has in memory."""
LANES: Final = "lanes"
"""`[organization, env, most]`: lines of the tree of lanes of a scope, `most` at most where it is no `null`."""
ACCOUNTS: Final = "accounts"
"""Likewise: what it has of the accounts of numbers; `most`: of their last calls."""
FIGURES: Final = "figures"
"""`null`: what it has in memory, counted."""
OF_A_PART: Final = 1_000
"""Numbers or lanes of which one part of an answer tells: half of the longest frame at most."""


class Asks:
    """Those that wait for an answer of one process. After one that did not come in time others wait for none.

    That lasts until the process says anything, or for as long as the one had: nobody's answer waits for it again and
    again while it stands still.
    """

    def __init__(self) -> None:
        self._asked = 0
        self._silent_until = 0.0  # by the loop's clock
        self._waiting: dict[int, tuple[list[Any], asyncio.Future[None]]] = {}

    async def ask(self, say: Callable[[str, Any], bool], what: str, about: Any) -> list[Any]:
        """The parts of the answer; none where it does not come in time."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._silent_until:
            return []
        self._asked += 1
        asked, parts = self._asked, list[Any]()
        done = loop.create_future()
        self._waiting[asked] = parts, done
        try:
            if not say(frames.ASK, [asked, what, about]):
                return []
            async with asyncio.timeout(LIMIT):
                await done
        except TimeoutError:
            self._silent_until = loop.time() + LIMIT
            return []
        finally:
            del self._waiting[asked]
        return parts

    def answered(self, said: list[Any]) -> None:
        """A part came; nobody may wait for it any more."""
        self._silent_until = 0.0
        asked, part, more = said
        if (waiting := self._waiting.get(asked)) is None:
            return
        parts, done = waiting
        parts.append(part)
        if not more and not done.done():
            done.set_result(None)
