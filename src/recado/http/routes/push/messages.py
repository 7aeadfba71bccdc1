"""Push messages: sent, previewed, listed, read, canceled; their devices, and who opened (C22.3)."""

from dataclasses import dataclass
from typing import Any, Final

from recado.domain.core.errors import FieldError, Problem, validation_error
from recado.domain.core.ids import PUSH_DISPATCH, PUSH_MESSAGE, lowest_id
from recado.domain.core.metadata import metadata_errors
from recado.domain.core.retention import MESSAGES_MONTHS, months_before
from recado.domain.push.dispatch_ids import dispatch_id
from recado.http.api.call import Call
from recado.http.api.paging import CursorQuery, items_of
from recado.http.api.route import MIB, Idempotency, Route
from recado.http.problems.missing import found
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.push.message_models import (
    CreatedPush,
    CreatePush,
    DispatchOpenedOut,
    DispatchPage,
    PreviewPush,
    PushModel,
    PushPage,
    PushPreviewOut,
    PushQuery,
    created_view,
    dispatch_view,
    preview_view,
    push_view,
)
from recado.http.wire.reply import REPLAYED, Reply
from recado.services.push.opens import OpenReport, PushOpens
from recado.services.push.sends import PushDraft, PushSends
from recado.storage.push import messages
from recado.storage.push.messages import PushDispatch, PushFilter, PushMessage

LIST: Final = "listPushMessages"
DISPATCHES: Final = "listPushDispatches"
MOST_PLACES: Final = 2**31 - 1
BODY_LIMIT: Final = 8 * MIB
"""Ten thousand tokens, as long as they usually are."""


@dataclass(frozen=True, slots=True)
class PushOperations:
    """The handlers."""

    dependencies: Dependencies
    sends: PushSends
    opens: PushOpens

    async def examine(self, call: Call) -> None:
        """Raise `Problem` for what no message can be."""
        await self.sends.examine(self._draft(call))

    def _draft(self, call: Call) -> PushDraft:
        """Raises `Problem` 422 for an audience that is none, or given in two ways, and for odd metadata."""
        call.body.refuse_audience(422)
        for name in ("metadata", "data"):
            value = getattr(call.body, name)
            if value is not None and (wrong := metadata_errors(value, f"/{name}")):
                raise validation_error(wrong, code="METADATA_INVALID")
        return _draft(call, scheduled_at=call.body.scheduled_at, campaign_id=call.body.campaign_id)

    async def create(self, call: Call) -> Reply:
        accepted = await self.sends.accept(self._draft(call))
        view = created_view(accepted.message, accepted.reach, replayed=accepted.replayed)
        return Reply(201, view, headers=REPLAYED if accepted.replayed else {})

    async def preview(self, call: Call) -> Reply:
        call.body.refuse_audience(400)
        try:
            return Reply(200, preview_view(await self.sends.preview(_draft(call))))
        except Problem as refusal:
            if refusal.code != "REFERENCE_NOT_FOUND":
                raise
            errors = [FieldError(each.path, each.code, each.message) for each in refusal.errors]
            raise Problem("AUDIENCE_INVALID", refusal.detail, errors=errors, status=400) from None

    async def list(self, call: Call) -> Reply:
        query: PushQuery = call.query
        after = self.dependencies.cursors.read(call, LIST)
        first, last = query.ids(PUSH_MESSAGE)
        wanted = PushFilter(
            organization_id=call.principal.organization_id,
            env=call.principal.env,
            statuses=None if query.status is None else [each.value for each in query.status],
            origins=query.origin,
            first_id=max(first, lowest_id(PUSH_MESSAGE, months_before(call.now, MESSAGES_MONTHS))),
            before_id=last if after is None else min(last, after[0]),
        )
        listed = await messages.list_page(self.dependencies.database, wanted, query.limit + 1)
        counts = await messages.counts(self.dependencies.database, listed)
        items = items_of(call, listed, lambda each: push_view(each, counts[each.id], breakdown=False))
        return Reply(200, await self.dependencies.cursors.page(call, LIST, items, lambda each: [each.id]))

    async def read(self, call: Call) -> Reply:
        return await self._shown(call.resource)

    async def cancel(self, call: Call) -> Reply:
        return await self._shown(found(await self.sends.cancel(call.resource.key)))

    async def dispatches(self, call: Call) -> Reply:
        message: PushMessage = call.resource
        after = self.dependencies.cursors.read(call, DISPATCHES)
        if after is not None and after[0] != message.id:
            raise Problem("INVALID_CURSOR", "The cursor is one of another message's devices.")
        before = MOST_PLACES if after is None else after[1]
        listed = await messages.dispatches(self.dependencies.database, message.key, before, call.query.limit + 1)

        def view(each: PushDispatch) -> dict[str, Any]:
            return dispatch_view(each, dispatch_id(message.id, each.place, message.dispatch_key))

        items = items_of(call, listed, view)
        page = await self.dependencies.cursors.page(call, DISPATCHES, items, lambda each: [message.id, each.place])
        return Reply(200, page)

    async def opened(self, call: Call) -> Reply:
        principal, told = call.principal, call.path["id"]
        one = await self.opens.opened(OpenReport(principal.organization_id, principal.env, told))
        view = {"id": told, "counted": one.counted}
        if one.opened_at is not None:
            view["openedAt"] = one.opened_at
        return Reply(200, view)

    async def find(self, call: Call) -> PushMessage:
        """The message that the path names; 404."""
        principal = call.principal
        return found(
            await messages.get(self.dependencies.database, principal.organization_id, principal.env, call.path["id"])
        )

    async def _shown(self, message: PushMessage) -> Reply:
        counts = await messages.counts(self.dependencies.database, [message])
        return Reply(200, push_view(message, counts[message.id], breakdown=True))


def _draft(call: Call, **more: Any) -> PushDraft:
    body, principal, key = call.body, call.principal, call.idempotency
    return PushDraft(
        organization_id=principal.organization_id,
        env=principal.env,
        origin="api" if principal.person is None else "composer",
        content=body.content,
        platforms=tuple(body.platforms),
        segment=body.segment,
        tokens=None if body.token_ids is None else tuple(dict.fromkeys(body.token_ids)),
        metadata=getattr(body, "metadata", None),
        created_by_id=principal.actor_id,
        key_hash=None if key is None else key.key_hash,
        fingerprint=None if key is None else key.fingerprint,
        **more,
    )


def push_message_routes(dependencies: Dependencies, *, sends: PushSends, opens: PushOpens) -> tuple[Route, ...]:
    """The operations on push messages."""
    operations = PushOperations(dependencies, sends, opens)
    group = Group("Push", reads="push:read", writes="push:send")
    one: dict[str, Any] = {"path_ids": {"id": PUSH_MESSAGE}, "load": operations.find}
    return (
        group.route(
            "POST /v2/push/messages", "createPushMessage", "Send a notification to many devices", operations.create,
            description=(
                "Answered once its audience is fixed: who registers later does not get it, who opts out until then "
                "does not either. It is charged for each device whose provider took it; the rest is released."
            ),
            body=CreatePush, body_limit=BODY_LIMIT, responses={201: CreatedPush}, rate_class="send",
            idempotency=Idempotency.REQUIRED, creates=True, examine=operations.examine,
            errors=(
                "METADATA_INVALID", "AUDIENCE_INVALID", "EMPTY_AUDIENCE", "REFERENCE_NOT_FOUND", "SCHEDULE_TOO_FAR",
                "ROUTE_NOT_AVAILABLE", "PAYMENT_REQUIRED", "IDEMPOTENCY_IN_PROGRESS", "DEPENDENCY_FAILED",
            ),
        ),
        group.route(
            "POST /v2/push/preview", "previewPushMessage", "See what a send would reach and cost",
            operations.preview, body=PreviewPush, body_limit=BODY_LIMIT, responses={200: PushPreviewOut},
            rate_class="bulk", bad_body_status=400, errors=("AUDIENCE_INVALID", "ROUTE_NOT_AVAILABLE"),
        ),
        group.route(
            "GET /v2/push/messages", LIST, "List push messages, newest first", operations.list, query=PushQuery,
            responses={200: PushPage}, errors=("INVALID_CURSOR",),
        ),
        group.route(
            "GET /v2/push/messages/{id}", "getPushMessage", "Read a push message", operations.read,
            responses={200: PushModel}, **one,
        ),
        group.route(
            "POST /v2/push/messages/{id}/cancel", "cancelPushMessage", "Cancel a push message before it leaves",
            operations.cancel, responses={200: PushModel}, errors=("INVALID_STATE",), **one,
        ),
        group.route(
            "GET /v2/push/messages/{id}/dispatches", DISPATCHES, "List the devices of a push message",
            operations.dispatches, query=CursorQuery, responses={200: DispatchPage}, errors=("INVALID_CURSOR",), **one,
        ),
        group.route(
            "POST /v2/push/dispatches/{id}/opened", "openPushDispatch", "Say that a notification was opened",
            operations.opened, responses={200: DispatchOpenedOut}, rate_class="device", scope="push:register",
            idempotency=Idempotency.NONE, errors=("NOT_FOUND",), path_ids={"id": PUSH_DISPATCH},
            description="The first time of a device counts; a repeat answers `counted: false`.",
        ),
    )  # fmt: skip
