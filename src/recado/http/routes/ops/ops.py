"""What operators see and order: numbers, actors, webhooks, connections to providers (C34.1).

A credential sees its organization in its environment; the installation's administrator sees everything.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from recado.actors.ops.actor_tree import ActorTree
from recado.actors.ops.kept import Kept
from recado.actors.ops.number_states import NumberStates
from recado.domain.core.errors import not_found
from recado.domain.core.ids import NUMBER
from recado.domain.messages.changes import NumberChanged
from recado.domain.ops.sender_activity import MINUTES
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.route import Route
from recado.http.problems.missing import found
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.ops.ops_models import (
    ActorsOut,
    NumberDetailOut,
    NumberStatesOut,
    ProviderStatesOut,
    RestartActor,
    RestartedOut,
    WebhookStatesOut,
)
from recado.http.routes.ops.ops_views import number_detail_view
from recado.http.routes.ops.samples import Sample, Samples, reply_of
from recado.http.routes.ops.stream import MEMORY, OperatorStream
from recado.http.wire.outlet import Outlet
from recado.http.wire.reply import Reply, StreamReply
from recado.storage.core import audit
from recado.storage.core.connections.changing import changing
from recado.storage.ops import ops
from recado.storage.ops.scope import INSTALLATION, Scope
from recado.storage.senders import numbers
from recado.storage.senders.numbers import Number

EVENTS: Final = "text/event-stream"
OPERATIONS: Final = Group("Operators", "ops:read", "ops:write")

log = structlog.get_logger(__name__)


def scope_of(call: Call) -> Scope:
    """What the caller sees."""
    principal = call.principal
    return Scope(principal.organization_id, principal.env) if principal.organization_id else INSTALLATION


@dataclass(frozen=True, slots=True)
class OperatorOperations:
    """The handlers."""

    dependencies: Dependencies
    samples: Samples
    states: NumberStates
    tree: ActorTree

    # Numbers --------------------------------------------------------------------------------------------------------

    async def find(self, call: Call) -> Number:
        """The number that the path names; 404."""
        scope, number_id, database = scope_of(call), call.path["id"], self.dependencies.database
        owner: tuple[str, str] | None = (scope.organization_id, scope.env)
        if scope.whole:
            owner = await ops.owner_of_number(database, number_id)
        return found(None if owner is None else await numbers.get(database, *owner, number_id))

    async def number(self, call: Call) -> Reply:
        number: Number = call.resource
        state = found(await self.states.one(number.organization_id, number.env, number.id))
        now = self.dependencies.clock.now()
        since = now.replace(second=0, microsecond=0) - timedelta(minutes=MINUTES - 1)
        sent = await ops.minutes(self.dependencies.database, number.organization_id, number.id, since)
        return Reply(200, number_detail_view(state, sent, now))

    async def pause(self, call: Call) -> Reply:
        """Everything stays queued; what is under way ends as it began."""
        return await self._move(call, "number.pause", _paused)

    async def resume(self, call: Call) -> Reply:
        return await self._move(call, "number.resume", _resumed)

    async def _move(self, call: Call, action: str, move: Callable[[Number, datetime], Number]) -> Reply:
        number: Number = call.resource
        organization_id, env, number_id = number.organization_id, number.env, number.id
        change, dependencies = NumberChanged(organization_id, env, number_id), self.dependencies
        async with changing(dependencies.database, dependencies.changed, change) as connection:
            before = found(await numbers.get_locked(connection, organization_id, env, number_id))
            after = await numbers.save(connection, before, move(before, call.now), call.now)
            if after is not before:
                await audit.write(
                    connection, dependencies.ids, actor_of(call), action,
                    organization_id=organization_id, env=env, target_id=number_id,
                )  # fmt: skip
        if after is not before:
            dependencies.changed(change)
            self.samples.forget_numbers(Scope(organization_id, env), INSTALLATION)
        return await self.number(call)

    # Actors ---------------------------------------------------------------------------------------------------------

    async def restart(self, call: Call) -> Reply:
        place = await self.tree.find(scope_of(call), call.body.path)
        if place is None:
            raise not_found()
        self.tree.admit(place)  # nothing is audited that does not happen
        if place.organization_id is None:  # it serves all organizations: no audit of one of them would show it
            log.warning("operator_restarts", path=place.path, request_id=call.request_id)
        else:
            await audit.write(
                self.dependencies.database, self.dependencies.ids, actor_of(call), "actor.restart",
                organization_id=place.organization_id, env=place.env, target_id=place.target_id,
                details={"path": place.path},
            )  # fmt: skip
        self.tree.restart(place)
        return Reply(202, {"path": place.path, "kind": place.kind})


def _paused(number: Number, now: datetime) -> Number:
    return number if number.operator_paused_at is not None else replace(number, operator_paused_at=now)


def _resumed(number: Number, now: datetime) -> Number:
    """The time that it was paused counts toward no message's time to live (C14.5)."""
    since = number.operator_paused_at
    if since is None:
        return number
    held = max(0, int((now - since).total_seconds() * 1_000))
    return replace(number, operator_paused_at=None, held_ms=number.held_ms + held)


def _shown(kept: "Kept[Scope, Sample]") -> Callable[[Call], Any]:
    async def show(call: Call) -> Reply:
        return reply_of(await kept.get(scope_of(call)))

    return show


def ops_routes(
    dependencies: Dependencies, *, samples: Samples, states: NumberStates, tree: ActorTree, stream: OperatorStream
) -> tuple[Route, ...]:
    """`states`: of numbers."""
    handlers = OperatorOperations(dependencies, samples, states, tree)

    async def look(call: Call) -> Reply:
        stream.admit(call.principal.organization_id)
        outlet = Outlet()
        events = stream.events(scope_of(call), call.headers.get("Last-Event-ID"), outlet)
        headers = {"X-Accel-Buffering": "no"}
        return StreamReply(200, events, content_type=EVENTS, headers=headers, memory=MEMORY, outlet=outlet)

    one: dict[str, Any] = {
        "load": handlers.find, "path_ids": {"id": NUMBER}, "responses": {200: NumberDetailOut}, "administered": True,
    }  # fmt: skip
    return (
        OPERATIONS.route(
            "GET /v2/ops/numbers", "listNumberStates", "See the live state of all numbers", _shown(samples.numbers),
            responses={200: NumberStatesOut}, administered=True,
            description="The most troubled first, then those with the longest queue. A sample is good for a second.",
        ),
        OPERATIONS.route(
            "GET /v2/ops/numbers/{id}", "getNumberState", "See the live state of a number", handlers.number,
            description="With its last 20 failures and its last 60 minutes. What is counted in memory begins with the "
            "process.", **one,
        ),
        OPERATIONS.route(
            "POST /v2/ops/numbers/{id}/pause", "pauseNumber", "Let nothing leave from a number", handlers.pause,
            description="Everything stays queued until it is resumed; calls that are under way end.", **one,
        ),
        OPERATIONS.route(
            "POST /v2/ops/numbers/{id}/resume", "resumeNumber", "Let a paused number send again", handlers.resume, **one
        ),
        OPERATIONS.route(
            "GET /v2/ops/actors", "listActors", "See what runs", _shown(samples.actors),
            responses={200: ActorsOut}, administered=True,
            description="The lanes of the organization's senders and the actors of its subscriptions, while they are "
            "in memory; the administrator sees the whole tree.",
        ),
        OPERATIONS.route(
            "POST /v2/ops/actors/restart", "restartActor", "Restart an actor", handlers.restart,
            body=RestartActor, responses={202: RestartedOut}, errors=("NOT_FOUND", "CONFLICT"), administered=True,
            description="It keeps its mailbox, and reads again what it knew. The answer does not wait for it. What "
            "knows which calls to providers have begun is restarted with the whole program alone: 409.",
        ),
        OPERATIONS.route(
            "GET /v2/ops/webhooks", "listWebhookStates", "See how deliveries to webhooks fare",
            _shown(samples.webhooks), responses={200: WebhookStatesOut}, administered=True,
        ),
        OPERATIONS.route(
            "GET /v2/ops/providers", "listProviderStates", "See how connections to providers fare",
            _shown(samples.providers), responses={200: ProviderStatesOut}, administered=True,
        ),
        OPERATIONS.route(
            "GET /v2/ops/stream", "streamOperations", "Watch what changes", look,
            responses={200: None}, response_types={200: EVENTS}, administered=True,
            errors=("RATE_LIMITED", "SERVICE_UNAVAILABLE"),
            description="Server-sent events once a second: `numbers`, `actors`, `webhooks` and `throughput`, each with "
            "the `items` that changed and the ids of those that are `gone`. `whole`: it is everything. A viewer that "
            "comes back with `Last-Event-ID` hears what it missed.",
        ),
    )  # fmt: skip
