"""POST /messages/resend: many failed messages are sent again by one request, as a batch (C15.4)."""

from typing import Annotated, Any, Final

import orjson
from pydantic import Field

from recado.domain.channels.chatapp import CHATAPP
from recado.domain.core.errors import FieldError, validation_error
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.models import ApiModel, Timestamp
from recado.http.api.operation import missing_scope
from recado.http.api.route import Idempotency, Route
from recado.http.routes.messages.batch_view import batch_view, new_batch_view
from recado.http.routes.messages.bulk import OTHER_SCOPES, SCOPES
from recado.http.routes.messages.bulk_models import BatchOut, Channel
from recado.http.routes.messages.message_models import Id
from recado.http.wire.reply import REPLAYED, Reply
from recado.services.batches.batch_acceptance import AcceptedBatch
from recado.services.batches.resend import Resend, Resends
from recado.storage.messages.resends import FailedFilter

MOST_IDS: Final = 1_000


class ResendFilter(ApiModel):
    """Failed messages of a batch or a campaign. A period holds what was created in [from, to)."""

    batch_id: Id | None = None
    campaign_id: Id | None = None
    number_id: Id | None = None
    from_: Annotated[Timestamp | None, Field(alias="from")] = None
    to: Timestamp | None = None


class ResendMessages(ApiModel):
    """Either `messageIds` or `filter`. `numberId`: the number that sends them now, in place of their own."""

    channel: Channel = CHATAPP
    message_ids: Annotated[list[Id], Field(min_length=1, max_length=MOST_IDS, fail_fast=True)] | None = None
    filter: ResendFilter | None = None
    number_id: Id | None = None
    include_uncertain: bool = False
    dry_run: bool = False


class Resent(ApiModel):
    """How many messages are sent again, and why the others are not: code → n."""

    batch: BatchOut
    matched: int
    skipped: dict[str, int]


class ResendEstimate(ApiModel):
    """What a resend would do; `estimatedCoins` where sends are billed."""

    matched: int
    skipped: dict[str, int]
    estimated_coins: int | None = None


class ResendOperation:
    """The handler."""

    def __init__(self, resends: Resends) -> None:
        self._resends = resends

    async def examine(self, call: Call) -> None:
        """Raise `Problem` for what asks for no batch."""
        await self._resends.examine(resend_of(call))

    async def resend(self, call: Call) -> Reply:
        resend = resend_of(call)
        if call.body.dry_run:
            plan = await self._resends.estimate(resend)
            answer = _counts(plan.requested, plan.skipped, orjson.loads(plan.skipped_reasons))
            if self._resends.charges:
                answer["estimatedCoins"] = plan.estimate
            return Reply(200, answer)
        outcome = await self._resends.send(resend)
        if isinstance(outcome, AcceptedBatch):
            new = outcome.batch
            counts = _counts(new.requested, new.skipped, orjson.loads(new.skipped_reasons))
            return Reply(202, {"batch": new_batch_view(new), **counts})
        found = outcome.batch
        counts = _counts(found.requested, found.skipped, dict(found.skipped_reasons))
        return Reply(202, {"batch": batch_view(found), **counts}, headers=REPLAYED)


def resend_of(call: Call) -> Resend:
    """What the body asks for; raises `Problem` 422."""
    body: ResendMessages = call.body
    scope = SCOPES[body.channel]
    if not call.can(scope):
        raise missing_scope(scope)
    if (body.message_ids is None) == (body.filter is None):
        raise validation_error([FieldError("", "REQUIRED", "Give either `messageIds` or `filter`.")])
    wanted = None if body.filter is None else _filter(body.filter)
    principal, key = call.principal, call.idempotency
    return Resend(
        organization_id=principal.organization_id,
        env=principal.env,
        channel=body.channel,
        by=actor_of(call),
        message_ids=body.message_ids,
        wanted=wanted,
        sender_id=body.number_id,
        include_uncertain=body.include_uncertain,
        key_hash=None if key is None else key.key_hash,
        fingerprint=None if key is None else key.fingerprint,
    )


def _filter(given: ResendFilter) -> FailedFilter:
    if given.batch_id is None and given.campaign_id is None:
        message = "`batchId` or `campaignId` is required in `filter`."
        raise validation_error([FieldError("/filter/batchId", "REQUIRED", message)])
    if given.from_ is not None and given.to is not None and given.from_ > given.to:
        message = "The period is not valid: `from` must not be later than `to`."
        raise validation_error([FieldError("/filter/to", "INVALID_PERIOD", message)])
    return FailedFilter(
        batch_id=given.batch_id,
        campaign_id=given.campaign_id,
        sender_id=given.number_id,
        start=given.from_,
        end=given.to,
    )


def _is_dry_run(body: Any) -> bool:
    return isinstance(body, dict) and body.get("dryRun") is True


def _counts(requested: int, skipped: int, reasons: dict[str, int]) -> dict[str, Any]:
    return {"matched": requested - skipped, "skipped": reasons}


def resend_routes(*, resends: Resends) -> tuple[Route, ...]:
    """The one operation."""
    operation = ResendOperation(resends)
    return (
        Route(
            method="POST",
            path="/messages/resend",
            handler=operation.resend,
            operation_id="resendMessages",
            summary="Send failed messages again",
            description=(
                "Makes a batch of copies: same recipients, content, campaigns and metadata. Each old message points to "
                "its copy with `replacedBy` and is not replaced again. A message that cannot be sent again is skipped "
                "and counted by its reason; one whose outcome is unknown is skipped unless `includeUncertain`. With "
                "`dryRun` nothing is sent: the answer is 200 with the counts and the price."
            ),
            tag="Batches",
            scope="messages:send",
            or_scopes=OTHER_SCOPES,
            rate_class="bulk",
            body=ResendMessages,
            responses={200: ResendEstimate, 202: Resent},
            errors=(
                "PAYMENT_REQUIRED",
                "EMPTY_AUDIENCE",
                "LIMIT_REACHED",
                "REFERENCE_NOT_FOUND",
                "ROUTE_NOT_AVAILABLE",
                "NUMBER_UNAVAILABLE",
                "DEPENDENCY_FAILED",
            ),
            idempotency=Idempotency.BOUND,
            makes_no_row=_is_dry_run,
            creates=True,
            examine=operation.examine,
        ),
    )
