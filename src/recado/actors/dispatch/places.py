"""Where the lane of a sender is: in this process, or in another one, which is told by a link."""

from collections.abc import Iterable
from typing import Final

from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.dispatch.placement import SHARDS, shard_of
from recado.domain.senders.sender import SenderKey
from recado.services.dispatch.sending import Tell


def nowhere(sender: SenderKey, message: object) -> None:
    """Nobody has the sender for a moment: whoever has it next finds its rows."""


class Places:
    """Numbers of the chat app may be in other processes, by their shards; all other senders are where most are."""

    def __init__(self, elsewhere: Tell | None = None) -> None:
        """`elsewhere`: where all lanes are, but for those that are put here; None: here."""
        self._others: Final = elsewhere
        self._of: list[Tell | None] = [elsewhere] * SHARDS

    def away(self, sender: SenderKey) -> Tell | None:
        """Tells the lane of a sender that is in another process; None: it is here."""
        if sender.channel != NUMBERS_CHANNEL:
            return self._others
        return self._of[shard_of(sender)]

    def put(self, shards: Iterable[int], tell: Tell | None) -> None:
        """Have the numbers of these shards be where `tell` says; None: here."""
        for shard in shards:
            self._of[shard] = tell
