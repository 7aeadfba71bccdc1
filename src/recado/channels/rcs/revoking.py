"""Taking back an RCS message that was not delivered (C17)."""

from typing import Protocol

from recado.channels.core.provider import Account


class Revokes(Protocol):
    """A `MessageSender` whose provider takes messages back."""

    async def revoke(self, message_id: str, provider_message_id: str, to: str, account: Account) -> bool:
        """Whether the message will certainly not be delivered any more; False: it cannot be taken back.

        May be asked twice for one message. Raises `ProviderError` when the provider does not say.
        """
