"""Who the recipients of a batch are: the contacts that they name, and what those behind them consented to (C12.5.6).

Asked for in blocks: ten thousand at once would keep a connection, and every other request, waiting.
"""

from recado.domain.batches.batch import BLOCK
from recado.domain.channels.address import AddressKind
from recado.domain.channels.policies import address_kind
from recado.services.batches.batch_draft import BatchDraft
from recado.services.batches.batch_rules import AcceptedRecipients, only_with_consent, without_suppressed
from recado.services.batches.channel_batches import ChannelBatches
from recado.storage.core.statements.rows import Executor
from recado.storage.messages import recipients
from recado.storage.messages.recipients import Recipient, RecipientKey, of_address


async def addresses_by_contact(executor: Executor, draft: BatchDraft) -> dict[str, str | None]:
    """The addresses of the contacts that recipients name, by their ids (None: it has none); without those that do
    not exist here."""
    where, by_email = (draft.organization_id, draft.env), address_kind(draft.channel) is AddressKind.EMAIL
    found: dict[str, str | None] = {}
    for start in range(0, len(draft.recipients), BLOCK):
        given = [each.get("contactId") for each in draft.recipients[start : start + BLOCK]]
        named = dict.fromkeys(each for each in given if each is not None and each not in found)
        if named:
            asked = [RecipientKey(*where, contact_id=contact_id) for contact_id in named]
            known = await recipients.find(executor, asked)
            for each in known:
                if each.contact_id:
                    found[each.contact_id] = each.email if by_email else each.phone
    return found


async def ask_for_consent(
    executor: Executor, draft: BatchDraft, accepted: AcceptedRecipients, *, granted_only: bool
) -> None:
    """Leave out anyone who refused, or with `granted_only` never agreed (C12.5.5)."""
    known: list[Recipient] = []
    where, kind, addresses = (draft.organization_id, draft.env), address_kind(draft.channel), accepted.recipients.phones
    for start in range(0, len(addresses), BLOCK):
        asked = [of_address(*where, kind, address) for address in addresses[start : start + BLOCK]]
        known += await recipients.find(executor, asked)
    only_with_consent(accepted, known, granted_only=granted_only)


async def leave_out_suppressed(draft: BatchDraft, accepted: AcceptedRecipients, rules: ChannelBatches) -> None:
    """Leave out whoever gets nothing, whatever its person consented to (C10.5)."""
    addresses, found = accepted.recipients.phones, set[str]()
    for start in range(0, len(addresses), BLOCK):
        found.update(await rules.suppressed((draft.organization_id, draft.env), addresses[start : start + BLOCK]))
    if found:
        without_suppressed(accepted, found)
