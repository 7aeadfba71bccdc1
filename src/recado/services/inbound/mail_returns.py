"""What bounces and complaints say of an address: it gets nothing any more, and whoever complained opted out (C10.2.8).

It comes before the moves of the messages, in their transaction: whoever wants contacts and messages locks them so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from recado.channels.core.events import Status
from recado.domain.channels.email import suppresses
from recado.domain.channels.policies import POLICIES
from recado.domain.contacts.consent import ConsentChange, ConsentStatus, ConsentUpdate, OptOutEntry, decide
from recado.domain.contacts.consent import repeated_refusal as repeated_by
from recado.domain.contacts.contact import consent_columns, email_key
from recado.domain.core.ids import EMAIL_SUPPRESSION, IdSource
from recado.domain.email.suppression import SuppressionReason, tells_nothing
from recado.domain.messages.changes import OnChange
from recado.domain.messages.message import MessageStatus, Report
from recado.services.contacts import contact_events
from recado.services.contacts.consents import ConsentChanged, Consents, Gathered, Outcome, address_of
from recado.storage.contacts import contacts, opt_outs
from recado.storage.contacts.opt_outs import Refusal, Registrant
from recado.storage.core.audit import SYSTEM
from recado.storage.core.crypto import KeyRing
from recado.storage.core.statements.rows import Executor
from recado.storage.email import suppressions
from recado.storage.email.suppressions import EmailSuppression
from recado.storage.messages import receipts
from recado.storage.messages.receipts import ReportedMessage

COMPLAINED: Final = ConsentChange(ConsentStatus.DENIED, source="complaint")
_PIECE: Final = 1_000  # contacts in a statement

MessageKey = tuple[str, str, str, str]
"""Organization, environment, channel, id."""


@dataclass(frozen=True, slots=True)
class MailReport:
    """A report that says something of an address, and the message that went there."""

    key: MessageKey
    status: Status


class MailReturns:
    """Writes suppressions and refusals. `changed` hears of queued deliveries; `keys`: of the phones in events.

    `simulator_domain`: of the addresses that behave the same each time.
    """

    def __init__(self, *, ids: IdSource, keys: KeyRing, changed: OnChange, simulator_domain: str) -> None:
        self._ids = ids
        self._keys = keys
        self._changed = changed
        self._simulator_domain = simulator_domain

    async def take(
        self, connection: Executor, reports: Sequence[MailReport], now: datetime, gathered: Gathered
    ) -> None:
        """Of reports that will move their messages; those that come late or again say nothing new."""
        messages = await receipts.reported_messages(connection, sorted({report.key for report in reports}))
        known = {each.key: each for each in messages}
        found = [
            (each, reason)
            for report in reports
            if (reason := suppresses(report.status.status, report.status.code)) is not None
            and (each := known.get(report.key)) is not None
            and _moves(each, report.status)
            and not tells_nothing(each.recipient, self._simulator_domain)
        ]
        if not found:
            return
        await suppressions.add_many(
            connection,
            [
                EmailSuppression(
                    organization_id=each.organization_id,
                    env=each.env,
                    id=self._ids.new(EMAIL_SUPPRESSION),
                    email=each.recipient,
                    reason=reason,
                    updated_at=now,
                )
                for each, reason in found
            ],
        )
        complained = [each for each, reason in found if reason is SuppressionReason.COMPLAINT]
        if complained:
            await self._refuse(connection, complained, now, gathered)

    async def _refuse(
        self, connection: Executor, complained: Sequence[ReportedMessage], now: datetime, gathered: Gathered
    ) -> None:
        """Everybody with the address refuses, and whom the message names (C12.5.7); of nobody the address alone."""
        consents, outcome = Consents(self._ids, gathered, self._changed, self._keys), Outcome()
        who: dict[tuple[str, str, str], set[str]] = {}
        for each in complained:
            named = who.setdefault((each.organization_id, each.env, email_key(each.recipient)), set())
            if each.contact_id is not None:
                named.add(each.contact_id)
        refused = []
        for (organization_id, env, address), named in sorted(who.items()):
            registrant = Registrant(organization_id, env, email=address)
            ids = sorted({*named, *await contacts.ids_by_email(connection, organization_id, env, address)})
            known = await contacts.lock(connection, organization_id, env, ids)
            (entry,) = await opt_outs.entries(connection, [registrant])
            await opt_outs.enter(connection, [(registrant, OptOutEntry(now, COMPLAINED.source))])
            if not known and entry is None:
                event = contact_events.opted_out(
                    organization_id, env, None, phone=None, source=COMPLAINED.source, at=now, reason=None
                )
                await consents.tell(connection, [event], outcome)
            refused += registrant.recipients()
            for start in range(0, len(known), _PIECE):
                changes, repeated = await _denied(
                    connection, (organization_id, env), known[start : start + _PIECE], now
                )
                refused += await consents.note(connection, changes, outcome, repeated=repeated)
        await consents.withdraw(connection, sorted(set(refused)), now, outcome)
        gathered.after.append(outcome.committed)


async def _denied(
    connection: Executor, environment: tuple[str, str], contact_ids: Sequence[str], now: datetime
) -> tuple[list[ConsentChanged], list[Refusal]]:
    """Store the refusals of contacts that are locked; and those that the registry alone is told of."""
    changes, repeated = [], []
    for before in await contacts.by_ids(connection, *environment, contact_ids):
        decided = decide(before.consent, COMPLAINED, now=now)
        if isinstance(decided, ConsentUpdate):
            after = await contacts.save(connection, before, replace(before, **consent_columns(decided.after)), now)
            changes.append(ConsentChanged(after, decided, SYSTEM))
        elif (repeat := repeated_by(before.consent, COMPLAINED, now=now)) is not None:
            repeated.append((address_of(before), repeat))
    return changes, repeated


def _moves(message: ReportedMessage, status: Status) -> bool:
    policy = POLICIES[message.channel]
    moves = policy.report_moves(MessageStatus(message.status), Report(status.status), uncertain=message.uncertain)
    return bool(moves)
