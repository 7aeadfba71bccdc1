"""The mailbox simulator in live: the service answers for its addresses, and a provider for all others (C29.4)."""

from dataclasses import replace

from recado.channels.core.adapters import MessageSender
from recado.channels.core.provider import Accepted, Account, OutboundMessage, Outcome, Refused
from recado.channels.core.references import NamedBy
from recado.channels.email.sandbox import EmailSandbox
from recado.domain.email.suppression import simulated


class WithSimulator:
    """A `MessageSender`: `provider`, but for the addresses of `simulator_domain`, which reach nobody."""

    def __init__(self, provider: MessageSender, simulator: EmailSandbox, simulator_domain: str) -> None:
        self._provider = provider
        self._simulator = simulator
        self._domain = simulator_domain

    @property
    def name(self) -> str:
        return self._provider.name

    @property
    def idempotent(self) -> bool:
        return self._provider.idempotent

    @property
    def looked_up_by(self) -> frozenset[NamedBy]:
        return self._provider.looked_up_by

    @property
    def paces_pairs(self) -> bool:
        return self._provider.paces_pairs

    async def start(self) -> None:
        await self._provider.start()

    async def stop(self) -> None:
        await self._provider.stop()

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        if simulated(message.to, self._domain) is None:
            return await self._provider.send(message, account, attempt)
        outcome = await self._simulator.send(message, account, attempt)
        return replace(outcome, simulated=True) if isinstance(outcome, Accepted | Refused) else outcome
