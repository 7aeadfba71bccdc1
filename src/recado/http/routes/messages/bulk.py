"""POST /messages/bulk: one content to many recipients by one request (C15.5)."""

from collections.abc import Mapping
from typing import Final

from pydantic.alias_generators import to_camel

from recado.domain.channels.policies import POLICIES
from recado.domain.core.errors import FieldError, Problem
from recado.http.api.call import Call
from recado.http.api.operation import missing_scope
from recado.http.api.route import MIB, Idempotency, Route
from recado.http.routes.messages.batch_view import batch_view, new_batch_view
from recado.http.routes.messages.bulk_models import BatchBody, BatchOut, CreateBatch
from recado.http.routes.messages.message_draft import SENDING_CODES
from recado.http.routes.messages.message_models import refuse_metadata
from recado.http.wire.reply import REPLAYED, Reply
from recado.services.batches.batch_acceptance import AcceptedBatch, BatchAcceptance
from recado.services.batches.batch_draft import BatchDraft

BODY_LIMIT: Final = 16 * MIB

SCOPES: Final = {"sms": "sms:send", "rcs": "rcs:send", **{each.channel: each.scope for each in POLICIES.values()}}
"""What a batch of a channel needs; of one that is not sent on yet, too: it is asked for first."""
OTHER_SCOPES: Final = tuple(sorted(set(SCOPES.values()) - {"messages:send"}))
"""They open the operation as well: the body decides which one is needed."""
NO_BODIES: Final[Mapping[str, type[BatchBody]]] = {}


class BulkOperation:
    """The handler."""

    def __init__(self, acceptance: BatchAcceptance) -> None:
        self._acceptance = acceptance

    async def examine(self, call: Call) -> None:
        """Raise `Problem` for what no batch can be."""
        await self._acceptance.examine(draft_of(call))

    async def create(self, call: Call) -> Reply:
        outcome = await self._acceptance.accept(draft_of(call))
        if isinstance(outcome, AcceptedBatch):
            return Reply(202, new_batch_view(outcome.batch))
        return Reply(202, batch_view(outcome.batch), headers=REPLAYED)


def draft_of(call: Call) -> BatchDraft:
    """The draft in the body of `call`; raises `Problem` 403 or 422."""
    body: BatchBody = call.body
    scope = SCOPES[body.channel]
    if not call.can(scope):
        raise missing_scope(scope)
    content = body.shared()
    refuse_metadata(body.metadata)
    audiences = [name for name in ("recipients", "list_id", "segment_id") if getattr(body, name) is not None]
    if len(audiences) != 1:
        sentence = "Give exactly one audience: recipients, listId or segmentId."
        paths = [f"/{to_camel(name)}" for name in audiences] or [""]
        raise Problem("AUDIENCE_INVALID", sentence, errors=[FieldError(p, "AUDIENCE_INVALID", sentence) for p in paths])
    principal, key = call.principal, call.idempotency
    return BatchDraft(
        organization_id=principal.organization_id,
        env=principal.env,
        channel=body.channel,
        **content,
        priority=body.priority,
        recipients=body.recipients or (),
        list_id=body.list_id,
        segment_id=body.segment_id,
        name=body.name,
        campaign_id=body.campaign_id,
        metadata=body.metadata,
        scheduled_at=body.scheduled_at,
        ttl_seconds=body.ttl_seconds,
        created_by_id=principal.actor_id,
        key_hash=None if key is None else key.key_hash,
        fingerprint=None if key is None else key.fingerprint,
    )


def bulk_routes(*, acceptance: BatchAcceptance, bodies: Mapping[str, type[BatchBody]] = NO_BODIES) -> tuple[Route, ...]:
    """The one operation. `bodies`: by channel, of those whose body is not chat-app's."""
    operation = BulkOperation(acceptance)
    return (
        Route(
            method="POST",
            path="/messages/bulk",
            handler=operation.create,
            operation_id="createBatch",
            summary="Send to up to 10,000 recipients",
            description=(
                "What the messages share is refused as for a single one; a recipient that cannot be sent to is left "
                "out and counted in `skippedReasons`, and each address is sent to once. 202 means that everything "
                "accepted is stored: the first messages are leaving already."
            ),
            tag="Batches",
            scope="messages:send",
            or_scopes=OTHER_SCOPES,
            rate_class="bulk",
            body=CreateBatch,
            bodies=bodies,
            body_limit=BODY_LIMIT,
            responses={202: BatchOut},
            errors=(
                "METADATA_INVALID",
                "AUDIENCE_INVALID",
                "EMPTY_AUDIENCE",
                "SCHEDULE_TOO_FAR",
                "TEXT_TOO_LONG",
                "SENDER_NOT_VERIFIED",
                *SENDING_CODES,
            ),
            idempotency=Idempotency.BOUND,
            creates=True,
            examine=operation.examine,
        ),
    )
