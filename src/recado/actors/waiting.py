"""Why a message has not left yet: the first gate of C14.5 that holds it, and when it is expected to pass (C14.6)."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from recado.actors.number_messages import NumberSituation
from recado.actors.number_view import Records
from recado.actors.row import TEMPLATE
from recado.domain.gates import FOREVER, Fail, Hold, TemplateFacts, class_hold, message_gate, number_hold
from recado.domain.message import WaitReason
from recado.domain.timestamps import format_timestamp
from recado.storage import dispatch
from recado.storage.message_reads import Message
from recado.storage.numbers import NumberKey

Ask = Callable[[NumberKey], Awaitable[NumberSituation | None]]
"""What holds the number now, from its actor; None when it does not answer in time."""


class WaitExplainer:
    """Explains one message at a time; reads only."""

    def __init__(self, records: Records, ask: Ask) -> None:
        self._records = records
        self._ask = ask

    async def explain(self, organization_id: str, env: str, message: Message) -> Mapping[str, Any] | None:
        """The `waiting` object of a queued or sending message; None when it is leaving right now."""
        row = await dispatch.state(self._records.db, organization_id, message.id)
        if row is None or message.number_id is None:
            return None
        if row["claimed_epoch"] is not None:
            return {"reason": WaitReason.UNCERTAIN} if row["reason"] == WaitReason.UNCERTAIN else None
        if row["not_before"] is not None:
            return _waiting(Hold(WaitReason(row["reason"]), row["not_before"]))
        if self._records.owners.holds(row["owner"]):
            return {"reason": WaitReason.OWNER_PAUSED}
        situation = await self._ask((organization_id, env, message.number_id))
        if situation is None:
            return {"reason": WaitReason.BEHIND}
        hold = await self._gate(row, message, situation)
        if hold is not None:
            return _waiting(hold)
        ahead = await dispatch.ahead(
            self._records.db, organization_id, message.number_id, row["class"], row["due_at"], message.id
        )
        if ahead == 0:
            return _waiting(Hold(WaitReason.RATE, situation.ready_at))
        drain = timedelta(seconds=ahead / situation.per_second) if situation.per_second else timedelta()
        return {**_waiting(Hold(WaitReason.BEHIND, situation.ready_at + drain)), "ahead": ahead}

    async def _gate(self, row: Mapping[str, Any], message: Message, situation: NumberSituation) -> Hold | None:
        """The first gate that holds it, in the order of C14.5."""
        if situation.view is None:
            return Hold(WaitReason.NUMBER_STATE)
        standing, now = situation.view.standing, self._records.clock.now()
        whole = number_hold(standing)
        if whole is not None and whole.reason is not WaitReason.NUMBER_STATE:
            return whole
        of_class = None if row["force"] else class_hold(standing, row["class"], now)
        if of_class is not None and of_class.reason is WaitReason.QUIET_HOURS:
            return of_class
        facts = None
        if message.template_id is not None:
            key = (message.organization_id, message.env, message.template_id)
            template = await self._records.templates.get(key)
            facts = None if template is None else TemplateFacts(template.status, template.category)
        own = message_gate(
            standing, now, klass=row["class"], free_form=message.type != TEMPLATE, force=row["force"], template=facts
        )
        return (None if isinstance(own, Fail) else own) or whole or of_class or situation.holding


def _waiting(hold: Hold) -> dict[str, Any]:
    waiting: dict[str, Any] = {"reason": hold.reason}
    if _known(hold.until):
        waiting["until"] = format_timestamp(hold.until)
    return waiting


def _known(until: datetime) -> bool:
    return until < FOREVER - timedelta(days=1)
