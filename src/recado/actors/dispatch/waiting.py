"""Why a message has not left yet: the first gate of C14.5 that holds it, and when it is expected to pass (C14.6)."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from recado.actors.dispatch.lane_messages import LaneSituation
from recado.actors.dispatch.sender_view import SenderRecords, read_sender, state_of
from recado.domain.channels.policies import POLICIES
from recado.domain.core.timestamps import format_timestamp
from recado.domain.dispatch.gates import FOREVER, Asked, Hold
from recado.domain.messages.message import WaitReason
from recado.domain.senders.number import NumberStatus, what_to_do
from recado.domain.senders.sender import SenderKey
from recado.domain.senders.social_account import how_to_connect
from recado.services.dispatch.records import Records
from recado.storage.dispatch import dispatch
from recado.storage.messages.message_reads import Message
from recado.storage.senders.numbers import Number
from recado.storage.senders.social_accounts import SocialAccount
from recado.storage.templates.templates import Template

Ask = Callable[[SenderKey], Awaitable[LaneSituation | None]]
"""What holds the sender now, from its lane; None when it does not answer in time."""


_NOT_DUE = frozenset({WaitReason.SCHEDULED, WaitReason.RETRY})
"""What comes before every gate but its own: the message's moment."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is stored about the message's sender, with its organization, and about its template."""

    sender: SenderRecords | None
    template: Template | None

    @property
    def number(self) -> Number | None:
        return None if self.sender is None else self.sender.number

    @property
    def account(self) -> SocialAccount | None:
        return None if self.sender is None else self.sender.account


class WaitExplainer:
    """Explains one message at a time; reads only."""

    def __init__(self, records: Records, ask: Ask) -> None:
        self._records = records
        self._ask = ask

    async def explain(self, organization_id: str, env: str, message: Message) -> Mapping[str, Any] | None:
        """The `waiting` object of a queued or sending message; None when it is leaving right now."""
        row = await dispatch.state(self._records.db, organization_id, message.id)
        if row is None or message.sender_id is None:
            return None
        if row["claimed_epoch"] is not None:
            return {"reason": WaitReason.UNCERTAIN} if row["reason"] == WaitReason.UNCERTAIN else None
        own = None if row["not_before"] is None else Hold(WaitReason(row["reason"]), row["not_before"])
        if row["repeat_of"] is not None:
            return _in_doubt(own)
        sender = SenderKey(organization_id, env, message.channel, message.sender_id)
        facts = await self._facts(sender, message)
        if own is not None and own.reason in _NOT_DUE:
            return _waiting(own, facts, message)
        gates = POLICIES[message.channel].gates
        hold = self._gate(row, message, facts)
        if own is not None and (hold is None or gates.place_of(own.reason) <= gates.place_of(hold.reason)):
            hold = own
        if hold is not None and gates.place_of(hold.reason) < gates.counted_by_the_lane:
            return _waiting(hold, facts, message)
        situation = await self._ask(sender)
        if situation is not None and situation.holding is not None:  # the whole number, before one pair of it
            hold = situation.holding
        if hold is not None:
            return _waiting(hold, facts, message)
        ahead = await dispatch.ahead(
            self._records.db, organization_id, message.sender_id, row["class"], row["due_at"], message.id
        )
        reason = WaitReason.BEHIND if ahead else WaitReason.RATE
        until = FOREVER
        if situation is not None:
            drain = timedelta(seconds=ahead / situation.per_second) if situation.per_second else timedelta()
            until = situation.ready_at + drain
        waiting = _waiting(Hold(reason, until), facts, message)
        return {**waiting, "ahead": ahead} if ahead else waiting

    async def _facts(self, sender: SenderKey, message: Message) -> _Facts:
        template = None
        if message.template_id is not None and POLICIES[sender.channel].gates.asks_template:
            template = await self._records.templates.get((sender.organization_id, sender.env, message.template_id))
        return _Facts(await read_sender(self._records, sender), template)

    def _gate(self, row: Mapping[str, Any], message: Message, facts: _Facts) -> Hold | None:
        """The first gate that holds it by what is stored, in the order of C14.5."""
        if facts.sender is None:
            return Hold(WaitReason.NUMBER_STATE)
        state, now = state_of(facts.sender), self._records.clock.now()
        owner_holds = self._records.owners.holds(row["owner"])
        asked = Asked(row["class"], row["needs_window"], row["obeys_quiet_hours"], facts.template, owner_holds)
        return POLICIES[message.channel].gates.first_hold(state, now, asked, force=row["force"])


def _in_doubt(own: Hold | None) -> dict[str, Any]:
    """It may have left, and is given to the provider again: whatever holds it, the outcome is what it waits for."""
    waiting: dict[str, Any] = {"reason": WaitReason.UNCERTAIN}
    if own is not None and _known(own.until):
        waiting["until"] = format_timestamp(own.until)
    return waiting


def _waiting(hold: Hold, facts: _Facts, message: Message) -> dict[str, Any]:
    waiting: dict[str, Any] = {"reason": hold.reason}
    if _known(hold.until):
        waiting["until"] = format_timestamp(hold.until)
    detail = _detail(hold.reason, facts, message)
    if detail is not None:
        waiting["detail"] = detail
    return waiting


def _detail(reason: WaitReason, facts: _Facts, message: Message) -> str | None:
    """What is known beyond the reason: what refused the last attempt, or the state or limit that holds the message."""
    match reason:
        case WaitReason.RETRY:
            return message.last_error
        case WaitReason.TEMPLATE_STATE if facts.template is not None:
            return f"the template is {facts.template.status}"
        case WaitReason.NUMBER_STATE if facts.number is not None and facts.number.status is not NumberStatus.CONNECTED:
            number = facts.number
            return f"the number is {number.status}: {what_to_do(number.status, number.env, number.id)}"
        case WaitReason.NUMBER_STATE if facts.account is not None:
            account = facts.account
            return f"the account is {account.status}: {how_to_connect(account.status, account.id)}"
        case WaitReason.TIER_LIMIT if facts.number is not None:
            return f"the number's tier is {facts.number.messaging_tier}"
        case WaitReason.DAILY_LIMIT if facts.number is not None:
            return f"the number's perDay is {facts.number.per_day}"
    return None


def _known(until: datetime) -> bool:
    return until < FOREVER - timedelta(days=1)
