"""Who the recipients of a batch are: the contacts that they name, and what those behind them consented to (C12.5.6).

Asked for in blocks: ten thousand at once would keep a connection, and every other request, waiting.
"""

from collections.abc import Sequence

from recado.actors.batch_rules import Accepted, BatchDraft, only_with_consent
from recado.domain.batch import BLOCK
from recado.storage import recipients
from recado.storage.organizations import Organization
from recado.storage.recipients import Asked, Recipient
from recado.storage.rows import Executor


async def phones_by_contact(executor: Executor, draft: BatchDraft) -> dict[str, str]:
    """The phones of the contacts that recipients name, by their ids; without those that do not exist here."""
    named = {each["contactId"]: None for each in draft.recipients if each.get("contactId") is not None}
    asked = [Asked(draft.organization_id, draft.env, contact_id=contact_id) for contact_id in named]
    known = await _find(executor, asked)
    return {each.contact_id: each.phone for each in known if each.contact_id is not None and each.phone is not None}


async def ask_for_consent(
    executor: Executor, draft: BatchDraft, accepted: Accepted, organization: Organization
) -> None:
    """Leave out whoever refused, or never agreed where the organization asks for that (C12.5.5)."""
    asked = [Asked(draft.organization_id, draft.env, phone=phone) for phone in accepted.recipients.phones]
    known = await _find(executor, asked)
    only_with_consent(accepted, known, granted_only=organization.require_granted_for_marketing)


async def _find(executor: Executor, asked: Sequence[Asked]) -> list[Recipient]:
    known: list[Recipient] = []
    for start in range(0, len(asked), BLOCK):
        known += await recipients.find(executor, asked[start : start + BLOCK])
    return known
