"""What the chat-app adapters need to know of a number besides what every channel has."""

from dataclasses import dataclass, field

from recado.channels.core.provider import Account


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatappDetails:
    """Of an `Account` whose `provider_id` is the provider's phone number id."""

    business_account_id: str
    access_token: str | None = field(default=None, repr=False)


def details_of(account: Account) -> ChatappDetails:
    assert isinstance(account.details, ChatappDetails)  # noqa: S101 - made by whoever reads the number
    return account.details
