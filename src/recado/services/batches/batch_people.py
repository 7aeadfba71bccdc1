"""Who the recipients of a batch are: the contacts that they name, and what those behind them consented to (C12.5.6).

Asked for in blocks: ten thousand at once would keep a connection, and every other request, waiting.
"""

from recado.domain.batches.batch import BLOCK
from recado.services.batches.batch_rules import AcceptedRecipients, BatchDraft, only_with_consent
from recado.storage.access.organizations import Organization
from recado.storage.core.rows import Executor
from recado.storage.messages import recipients
from recado.storage.messages.recipients import Recipient, RecipientKey


async def phones_by_contact(executor: Executor, draft: BatchDraft) -> dict[str, str]:
    """The phones of the contacts that recipients name, by their ids; without those that do not exist here."""
    where = (draft.organization_id, draft.env)
    phones: dict[str, str] = {}
    for start in range(0, len(draft.recipients), BLOCK):
        given = [each.get("contactId") for each in draft.recipients[start : start + BLOCK]]
        named = dict.fromkeys(each for each in given if each is not None and each not in phones)
        if named:
            asked = [RecipientKey(*where, contact_id=contact_id) for contact_id in named]
            known = await recipients.find(executor, asked)
            phones |= {each.contact_id: each.phone for each in known if each.contact_id and each.phone is not None}
    return phones


async def ask_for_consent(
    executor: Executor, draft: BatchDraft, accepted: AcceptedRecipients, organization: Organization
) -> None:
    """Leave out anyone who refused, or never agreed where the organization asks for that (C12.5.5)."""
    known: list[Recipient] = []
    phones = accepted.recipients.phones
    for start in range(0, len(phones), BLOCK):
        asked = [RecipientKey(draft.organization_id, draft.env, phone=phone) for phone in phones[start : start + BLOCK]]
        known += await recipients.find(executor, asked)
    only_with_consent(accepted, known, granted_only=organization.require_granted_for_marketing)
