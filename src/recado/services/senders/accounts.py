"""A stored number as its provider knows it, with its secret in the clear for the length of a call."""

from typing import TypeVar

from recado.channels.chatapp.account import ChatappDetails
from recado.channels.core.provider import Account
from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.core.errors import no_provider
from recado.storage.core.crypto import KeyRing
from recado.storage.senders.numbers import Number

Provider = TypeVar("Provider")

ACCESS_TOKEN = "access_token"  # noqa: S105 - the name of the field, which its encryption is bound to (C30.1)


def account_of(number: Number, keys: KeyRing) -> Account:
    """Raises `Tampered` when the stored secret is not what was stored."""
    token = None
    if number.access_token_cipher is not None:
        token = keys.decrypt(
            number.access_token_cipher,
            organization_id=number.organization_id,
            record_id=number.id,
            field=ACCESS_TOKEN,
        )
    return Account(
        sender_id=number.id,
        organization_id=number.organization_id,
        env=number.env,
        provider_id=number.phone_number_id,
        owner=f"{number.env} {number.business_account_id}",  # in each environment it may be another's
        details=ChatappDetails(business_account_id=number.business_account_id, access_token=token),
    )


def required(provider: Provider | None, channel: str = NUMBERS_CHANNEL) -> Provider:
    """Raises `Problem` DEPENDENCY_FAILED (502) when the environment has no provider (C33)."""
    if provider is None:
        raise no_provider(channel)
    return provider
