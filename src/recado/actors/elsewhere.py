"""Where the actors are, as a process sees it that has none, or not all of them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from recado.actors.dispatch.lane_messages import LaneSituation
from recado.actors.ops.actor_tree import LanesAway
from recado.actors.ops.number_states import NumbersAway
from recado.actors.ops.process_figures import ProcessFigures
from recado.actors.ops.provider_states import ProvidersAway
from recado.domain.dispatch.gates import Hold
from recado.domain.messages.changes import Change
from recado.domain.senders.sender import SenderKey
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.storage.batches.totals import TotalsKey


class Elsewhere(Protocol):
    """The process that has the actors. All that it is told is a hint: rows are the truth, and its pollers read them."""

    def tell(self, sender: SenderKey, message: object) -> None:
        """For the lane of a sender."""

    def queued(self, subscriptions: Iterable[SubscriptionKey]) -> None:
        """These webhook subscriptions have deliveries."""

    def emptied(self, keys: Sequence[TotalsKey]) -> None:
        """Nothing of these batches and campaigns is queued or sending any more."""

    def expected(self, due_at: datetime) -> None:
        """A report of the sandbox was stored that is due then."""

    def changed(self, change: Change) -> None:
        """A record was changed here, and its change is committed."""


class Away(NumbersAway, LanesAway, ProvidersAway, Protocol):
    """The processes beside this one that have numbers. One that does not answer in time has nothing to tell."""

    async def situation(self, sender: SenderKey) -> LaneSituation | None:
        """What holds the sender now."""

    async def trouble(self, sender: SenderKey) -> Hold | None:
        """What keeps it from reaching its provider, as its last calls showed."""

    @property
    def unrecorded(self) -> int:
        """Their calls whose outcomes are not written yet."""

    def called_at(self, message_id: str) -> datetime | None:
        """When one of them began the call for a message whose outcome is not recorded yet."""

    async def figures(self) -> Sequence[ProcessFigures]:
        """Of each of them."""
