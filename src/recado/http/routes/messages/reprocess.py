"""POST /messages/{id}/reprocess: a failed or archived message is sent again as a new one (C15.4)."""

from recado.domain.access.scopes import PII
from recado.domain.core.errors import Problem, not_found
from recado.domain.core.ids import MESSAGE
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.models import ApiModel
from recado.http.api.route import Idempotency, Route, as_modelled
from recado.http.routes.messages.message_draft import SENDING_CODES
from recado.http.routes.messages.message_models import CreatedMessage
from recado.http.routes.messages.message_view import created_view
from recado.http.wire.reply import NO_HEADERS, REPLAYED, Reply
from recado.services.messages.acceptance import Acceptance, Replayed
from recado.services.messages.draft import Again
from recado.services.messages.replacing import draft_again
from recado.storage.core.connections.postgres import Database
from recado.storage.messages import message_reads
from recado.storage.messages.message_reads import Message


class Reprocess(ApiModel):
    """The body, which may be left out. `includeUncertain`: also a message that may have left."""

    include_uncertain: bool = False


class ReprocessOperation:
    """The handler."""

    def __init__(self, database: Database, acceptance: Acceptance) -> None:
        self._database = database
        self._acceptance = acceptance

    async def reprocess(self, call: Call) -> Reply:
        key = call.idempotency
        draft = draft_again(
            Again(call.resource, actor_of(call), call.body.include_uncertain),
            sent_by=call.principal.person,
            key_hash=None if key is None else key.key_hash,
            fingerprint=None if key is None else key.fingerprint,
        )
        try:
            outcome = await self._acceptance.accept(draft)
        except Problem as refusal:
            refusal.errors = ()  # they point to fields of the old message, which this body does not have
            raise
        replayed = isinstance(outcome, Replayed)
        # Read back: beside what the draft says, it belongs to the batch and the contact of the old one.
        message = await self._get(call, outcome.message.id)
        view = created_view(message, replayed=replayed, unmasked=call.can(PII))
        return Reply(201, view, headers=REPLAYED if replayed else NO_HEADERS)

    async def find(self, call: Call) -> Message:
        """The message of the path; 404."""
        return await self._get(call, call.path["id"])

    async def _get(self, call: Call, message_id: str) -> Message:
        principal = call.principal
        message = await message_reads.get(self._database, principal.organization_id, principal.env, message_id)
        if message is None:
            raise not_found()
        return message


def reprocess_routes(*, database: Database, acceptance: Acceptance) -> tuple[Route, ...]:
    """The one operation."""
    operation = ReprocessOperation(database, acceptance)
    return (
        Route(
            method="POST",
            path="/messages/{id}/reprocess",
            handler=operation.reprocess,
            operation_id="reprocessMessage",
            summary="Send a failed or archived message again",
            description=(
                "Makes a new message with the same recipient, content, campaign, batch and metadata; every rule of a "
                "new one holds. The old message points to it with `replacedBy` and is not replaced again. A message "
                "whose outcome is unknown may have left: it is sent again only with `includeUncertain`."
            ),
            tag="Messages",
            scope="messages:send",
            rate_class="write",
            body=Reprocess,
            responses={201: CreatedMessage},
            errors=(
                "INVALID_STATE",
                "ALREADY_REPLACED",
                "RECIPIENT_MISSING",
                "RECIPIENT_MISMATCH",
                "CONTACT_OPTED_OUT",
                "CONSENT_REQUIRED",
                "WINDOW_CLOSED",
                *SENDING_CODES,
            ),
            idempotency=Idempotency.BOUND,
            creates=True,
            examine=as_modelled,
            path_ids={"id": MESSAGE},
            load=operation.find,
        ),
    )
