"""Numbers as the chat-app adapters get them."""

from recado.channels.chatapp.account import ChatappDetails
from recado.channels.core.provider import Account


def chatapp_account(
    number_id: str = "num_1",
    organization_id: str = "org_1",
    *,
    phone_number_id: str = "pn-1",
    business_account_id: str = "ba-1",
    access_token: str | None = None,
) -> Account:
    return Account(
        sender_id=number_id,
        organization_id=organization_id,
        env="live",
        provider_id=phone_number_id,
        owner=f"live {business_account_id}",
        details=ChatappDetails(business_account_id=business_account_id, access_token=access_token),
    )
