"""What operators look at, rendered: one sample for all who look at the same within a second (C34.1)."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from recado.actors.ops.actor_tree import ActorTree
from recado.actors.ops.kept import MOST, MOST_SCOPES, Kept
from recado.actors.ops.number_states import NumberStates
from recado.actors.ops.provider_states import ProviderStates
from recado.actors.ops.scope_numbers import NO_SUMS, Sums
from recado.actors.ops.webhook_states import WebhookStates
from recado.domain.core.clock import Clock
from recado.engine.child import Child, Figures
from recado.engine.turns import in_pieces, turns
from recado.http.routes.ops.ops_views import (
    actor_view,
    number_state_view,
    provider_state_view,
    throughput_view,
    webhook_state_view,
)
from recado.http.wire.rendering import JSON, dump
from recado.http.wire.reply import Reply, StreamReply
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.ops.scope import Scope

STEP_BYTES: Final = 256 * 1024  # that are sent at once
SAMPLED_AT_ONCE, MOST_WAITING = 2, 16  # samples that are made: in all, and of an organization that wait

MOST_ITEMS: Final = 1_000  # of a kind that the stream tells of: the first ones of the list
RENDERED_AT_ONCE: Final = 250  # numbers in a turn of the event loop

MOST_KNOWN: Final = 10_000  # actors whose last item is remembered
Sample = Sequence[tuple[str, bytes]]
"""What each item is about, and its JSON; in their order."""


class Samples:
    """Makes samples, a few at a time, each in steps of the event loop."""

    def __init__(
        self,
        *,
        numbers: NumberStates,
        actors: ActorTree,
        webhooks: WebhookStates,
        providers: ProviderStates,
        clock: Clock,
    ) -> None:
        self._numbers = numbers
        self._actors = actors
        self._webhooks = webhooks
        self._providers = providers
        self._clock = clock
        self._places = FairPlaces(SAMPLED_AT_ONCE, most_waiting=MOST_WAITING)
        self.numbers = self._kept(self._number_sample)
        self.actors = self._kept(self._actor_sample)
        self.first_numbers = self._kept(partial(self._number_sample, most=MOST_ITEMS), MOST_SCOPES)
        self.first_actors = self._kept(self._first_actors, MOST_SCOPES)
        self.webhooks = self._kept(self._webhook_sample, MOST_SCOPES)
        self.providers = self._kept(self._provider_sample)
        self.throughput: Kept[Scope, Sample] = Kept(self._throughput, clock=clock, times=0.0, most=MOST_SCOPES)
        # As they were rendered last; what left memory is forgotten with it.
        self._actors_known: WeakKeyDictionary[Child, tuple[Figures, tuple[str, bytes]]] = WeakKeyDictionary()
        self._sums: dict[Scope, Sums] = {}  # of the numbers of each scope, when they were looked at last

    def forget_numbers(self, *scopes: Scope) -> None:
        """A number of these was changed: whoever asks next sees it."""
        for scope in scopes:
            self._numbers.forget(scope)
            self.numbers.forget(scope)
            self.first_numbers.forget(scope)

    def _kept(
        self, sample: Callable[[Scope], AsyncIterator[Iterable[tuple[str, bytes]]]], most: int = MOST
    ) -> "Kept[Scope, Sample]":
        async def made(scope: Scope) -> Sample:
            async with self._places.place(scope.organization_id):
                return [each async for some in sample(scope) for each in some]

        return Kept(made, clock=self._clock, times=0.0, most=most)

    async def _number_sample(
        self, scope: Scope, *, most: int | None = None
    ) -> AsyncIterator[Iterable[tuple[str, bytes]]]:
        """All numbers in their order, or so many of them; the sums are of all."""
        look = await self._numbers.look(scope, most)
        self._sums.pop(scope, None)
        if len(self._sums) >= MOST_SCOPES:
            del self._sums[next(iter(self._sums))]
        self._sums[scope] = look.sums
        now = self._clock.now()
        async for some in in_pieces([state for state in look.states if state.shown is None], RENDERED_AT_ONCE):
            for state in some:
                state.shown = state.id, dump(number_state_view(state, now))
        yield [state.shown for state in look.states if state.shown is not None]

    async def _throughput(self, scope: Scope) -> Sample:
        """What goes through all numbers of the scope together."""
        await self.first_numbers.get(scope)
        if scope not in self._sums:  # others were looked at since that sample was made
            self.first_numbers.forget(scope)
            await self.first_numbers.get(scope)
        return [("throughput", dump(throughput_view(self._sums.get(scope, NO_SUMS))))]

    async def _actor_sample(self, scope: Scope) -> AsyncIterator[Iterable[tuple[str, bytes]]]:
        async for children in self._actors.children(scope):
            yield [(child.path, dump(actor_view(child.node()))) for child in children]
        async for nodes in self._actors.lanes_away(scope):
            yield [(node.path, dump(actor_view(node))) for node in nodes]

    async def _first_actors(self, scope: Scope) -> AsyncIterator[Iterable[tuple[str, bytes]]]:
        """Those of which the stream tells: it looks each second, and most of them do nothing meanwhile."""
        known, shown = self._actors_known, 0
        async for children in self._actors.children(scope, MOST_ITEMS):
            if len(known) > MOST_KNOWN:
                known.clear()
            items = []
            for child in children:
                figures, before = child.figures(), known.get(child)
                if before is None or before[0] != figures:
                    before = known[child] = figures, (child.path, dump(actor_view(child.node())))
                items.append(before[1])
            shown += len(items)
            yield items
        async for nodes in self._actors.lanes_away(scope, MOST_ITEMS - shown):
            yield [(node.path, dump(actor_view(node))) for node in nodes]

    async def _webhook_sample(self, scope: Scope) -> AsyncIterator[Iterable[tuple[str, bytes]]]:
        now = self._clock.now()
        yield [(each.stored.id, dump(webhook_state_view(each, now))) for each in await self._webhooks.of(scope)]

    async def _provider_sample(self, scope: Scope) -> AsyncIterator[Iterable[tuple[str, bytes]]]:
        now = self._clock.now()
        for each in await self._providers.of(scope):
            yield [(f"{each.env} {each.channel} {each.gateway or ''}", dump(provider_state_view(each, now)))]


def reply_of(sample: Sample) -> Reply:
    """`{items}`: whole, or sent piece by piece where it is large."""
    if sum(len(item) for _, item in sample) <= STEP_BYTES:
        return Reply(200, b'{"items":[' + b",".join(item for _, item in sample) + b"]}")
    return StreamReply(200, _pieces(sample), content_type=JSON)


async def _pieces(sample: Sample) -> AsyncGenerator[bytes]:
    piece, size = [], 0
    before = b'{"items":['
    for _, item in sample:
        piece.append(item)
        size += len(item)
        if size >= STEP_BYTES:
            yield before + b",".join(piece)
            piece, size, before = [], 0, b","
            await turns.next()
    yield (before + b",".join(piece) if piece else b"") + b"]}"
