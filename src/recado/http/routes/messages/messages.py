"""Messages: send one, list and read, force and archive (C15.1)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol

from recado.domain.access.scopes import PII
from recado.domain.channels.policies import GENERIC_CHANNELS, channels_that_know
from recado.domain.core.errors import Problem, conflict, not_found
from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.core.retention import MESSAGES_MONTHS, months_before
from recado.domain.messages.message import MessageEvent, MessageStatus
from recado.domain.senders.sender import SenderKey
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.paging import Cursors
from recado.http.api.route import Idempotency, Route
from recado.http.callers.principal import ACCOUNT
from recado.http.routes.core.phones import searched_recipient
from recado.http.routes.messages.message_draft import FORCE, SENDING_CODES, draft_of
from recado.http.routes.messages.message_models import (
    CreatedMessage,
    CreateMessage,
    MessageDetail,
    MessageList,
    MessageModel,
    MessageQuery,
)
from recado.http.routes.messages.message_pages import MessagePages
from recado.http.routes.messages.message_view import AcceptedView, created_view, masked, message_view, waits_view
from recado.http.wire.reply import REPLAYED, Reply
from recado.services.messages.acceptance import Acceptance, AcceptedMessage
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import Effects
from recado.storage.messages import message_moves, message_reads
from recado.storage.messages.message_reads import Message, MessageFilter

LIST: Final = "listMessages"

_WAITING = frozenset({MessageStatus.QUEUED.value, MessageStatus.SENDING.value})

Forced = Callable[[SenderKey], None]
"""A queued message of this sender was forced."""


class Explainer(Protocol):
    """Says why a message waits (C14.6)."""

    async def explain(self, organization_id: str, env: str, message: Message) -> Mapping[str, Any] | None: ...


class MessageOperations:
    """The handlers."""

    def __init__(
        self,
        database: Database,
        ids: IdSource,
        acceptance: Acceptance,
        explainer: Explainer,
        forced: Forced,
        effects: Effects,
        cursors: Cursors,
    ) -> None:
        self._database = database
        self._ids = ids
        self._acceptance = acceptance
        self._explainer = explainer
        self._forced = forced
        self._effects = effects
        self._pages = MessagePages(
            database, cursors, name=LIST, view=lambda call: partial(message_view, unmasked=call.can(PII))
        )
        self._accepted = AcceptedView()

    async def examine(self, call: Call) -> None:
        """Raise `Problem` for what no message can be."""
        await self._acceptance.examine(draft_of(call))

    async def create(self, call: Call) -> Reply:
        outcome = await self._acceptance.accept(draft_of(call))
        unmasked = call.can(PII)
        if isinstance(outcome, AcceptedMessage):
            return Reply(201, self._accepted.render(outcome.message, unmasked=unmasked))
        view = created_view(outcome.message, replayed=True, unmasked=unmasked)
        return Reply(201, view, headers=REPLAYED)

    async def list(self, call: Call) -> Reply:
        return await self._pages.page(call, _filter)

    async def read(self, call: Call) -> Reply:
        message: Message = call.resource
        if message.direction == "inbound" and call.principal.actor_type == ACCOUNT:
            message = await self._opened(call, message)
        view = message_view(message, unmasked=call.can(PII))
        if message.status in _WAITING:
            waiting = await self._explainer.explain(message.organization_id, message.env, message)
            if waiting is not None:
                view["waiting"] = waiting
        if waits := waits_view(message):
            view["waits"] = waits
        return Reply(200, view)

    async def _opened(self, call: Call, message: Message) -> Message:
        """The message that came in, read by a person from now on at the latest (C15.4)."""
        opened = await message_moves.open_inbound(
            self._database, message.organization_id, message.env, message.channel, message.id, call.now
        )
        if not opened:
            return message
        return replace(message, status=MessageStatus.READ.value, read_at=call.now, updated_at=call.now)

    async def force(self, call: Call) -> Reply:
        message: Message = call.resource
        moved = await message_moves.force(
            self._database, self._ids, actor_of(call), message.organization_id, message.env, message.id, call.now
        )
        if not moved:
            raise await self._refused(call, "Only a queued message can be forced.")
        if message.sender_id is not None:
            self._forced(SenderKey(message.organization_id, message.env, message.channel, message.sender_id))
        return await self._changed(call)

    async def archive(self, call: Call) -> Reply:
        message: Message = call.resource
        moved = await message_moves.archive(
            self._database,
            self._ids,
            actor_of(call),
            message.organization_id,
            message.env,
            message.id,
            call.now,
            self._effects,
        )
        if not moved:
            archived = message.channel in channels_that_know(MessageEvent.ARCHIVE)
            which = "queued or failed message" if archived else f"queued message of channel {message.channel}"
            raise await self._refused(call, f"Only a {which} can be archived.")
        return await self._changed(call)

    async def replay(self, call: Call, status: int, body: Any) -> Reply:
        """A kept answer, its recipient masked for this caller."""
        return Reply(status, body if call.can(PII) else masked(body))

    async def replay_erased(self, call: Call, status: int) -> Reply:
        """What is left of the message, when its answer is gone with its contact (C12.6)."""
        return Reply(status, message_view(call.resource, unmasked=call.can(PII)))

    async def find(self, call: Call) -> Message:
        """The message of the path; 404."""
        principal = call.principal
        message = await message_reads.get(
            self._database, principal.organization_id, principal.env, call.path["id"], months=self._database.months
        )
        if message is None:
            raise not_found()
        return message

    async def _changed(self, call: Call) -> Reply:
        message = await self.find(call)
        view = message_view(message, unmasked=True)
        return Reply(200, view if call.can(PII) else masked(view), stored=view, subject_id=message.contact_id)

    async def _refused(self, call: Call, detail: str) -> Problem:
        return conflict("INVALID_STATE", detail, status=(await self.find(call)).status)


def _filter(call: Call, query: MessageQuery) -> MessageFilter:
    """What the query asks for of what is still kept (C32): a month of messages is removed when all of it may go."""
    kept_from = months_before(call.now, MESSAGES_MONTHS)
    return MessageFilter(
        organization_id=call.principal.organization_id,
        env=call.principal.env,
        channels=GENERIC_CHANNELS if query.channel is None else tuple(dict.fromkeys(query.channel)),
        status=query.status,
        direction=query.direction,
        recipient=None if query.phone is None else searched_recipient(query.phone),
        sender_id=query.number_id,
        contact_id=query.contact_id,
        campaign_id=query.campaign_id,
        batch_id=query.batch_id,
        sent_by_account_id=query.sent_by_account_id,
        start=max(query.from_ or kept_from, kept_from),
        end=query.to,
    )


def message_routes(
    *,
    database: Database,
    ids: IdSource,
    acceptance: Acceptance,
    explainer: Explainer,
    forced: Forced,
    effects: Effects,
    cursors: Cursors,
) -> tuple[Route, ...]:
    """The operations on messages. `forced` tells the lane of its sender; `effects` follow what is archived."""
    operations = MessageOperations(database, ids, acceptance, explainer, forced, effects, cursors)
    one = {"id": MESSAGE}
    return (
        Route(
            method="POST",
            path="/messages",
            handler=operations.create,
            operation_id="createMessage",
            summary="Send a message",
            description=(
                "The message is stored before the answer: 201 means that it will leave, at the pace of its number. "
                "Its price is held until it is sent; 402 when the wallet does not cover it. "
                "A repeat with the same `Idempotency-Key` answers the message as it is now, with `replayed: true`."
            ),
            tag="Messages",
            scope="messages:send",
            rate_class="send",
            body=CreateMessage,
            responses={201: CreatedMessage},
            errors=(
                "METADATA_INVALID",
                "PHONE_INVALID",
                "RECIPIENT_MISSING",
                "RECIPIENT_MISMATCH",
                "CONTACT_OPTED_OUT",
                "CONSENT_REQUIRED",
                "SCHEDULE_TOO_FAR",
                "WINDOW_CLOSED",
                "TEXT_TOO_LONG",
                *SENDING_CODES,
            ),
            idempotency=Idempotency.BOUND,
            creates=True,
            examine=operations.examine,
            at_fronts=True,
        ),
        Route(
            method="GET",
            path="/messages",
            handler=operations.list,
            operation_id=LIST,
            summary="List messages, newest first",
            tag="Messages",
            scope="messages:read",
            rate_class="read",
            query=MessageQuery,
            responses={200: MessageList},
        ),
        Route(
            method="GET",
            path="/messages/{id}",
            handler=operations.read,
            operation_id="getMessage",
            summary="Read a message, and why it has not left yet",
            tag="Messages",
            scope="messages:read",
            rate_class="read",
            responses={200: MessageDetail},
            path_ids=one,
            load=operations.find,
        ),
        Route(
            method="POST",
            path="/messages/{id}/force",
            handler=operations.force,
            operation_id="forceMessage",
            summary="Let a queued message go before its turn",
            description=(
                "Passes the schedule, quiet hours and the token bucket; every other gate holds. The number pays the "
                "token back with the messages that follow. Audited."
            ),
            tag="Messages",
            scope=FORCE,
            rate_class="write",
            responses={200: MessageModel},
            errors=("INVALID_STATE",),
            idempotency=Idempotency.ACCEPTED,
            replay=operations.replay,
            replay_erased=operations.replay_erased,
            path_ids=one,
            load=operations.find,
        ),
        Route(
            method="POST",
            path="/messages/{id}/archive",
            handler=operations.archive,
            operation_id="archiveMessage",
            summary="Withdraw a queued message, or put a failed one away",
            tag="Messages",
            scope="messages:send",
            rate_class="write",
            responses={200: MessageModel},
            errors=("INVALID_STATE",),
            idempotency=Idempotency.ACCEPTED,
            replay=operations.replay,
            replay_erased=operations.replay_erased,
            path_ids=one,
            load=operations.find,
        ),
    )
