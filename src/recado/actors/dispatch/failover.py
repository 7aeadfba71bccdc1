"""Which of a channel's gateways sends now: one takes over when another fails (C16.3)."""

from collections.abc import Sequence

from recado.actors.dispatch.shared_gateway import GatewayShare, SharedGateway
from recado.domain.core.clock import Clock


class Failover:
    """Gateways of which one takes over from another (C16.3). With one alone it is that one, always."""

    def __init__(self, clock: Clock, gateways: tuple[SharedGateway, ...]) -> None:
        """In the order in which they are preferred."""
        self._clock = clock
        self.gateways = gateways

    def of(self, organization_id: str) -> "OrganizationGateways":
        """The gateways as an organization has them."""
        return OrganizationGateways(self._clock, [gateway.share_of(organization_id) for gateway in self.gateways])


class OrganizationGateways:
    """An organization's shares of the gateways of a channel."""

    __slots__ = ("_clock", "_shares")

    def __init__(self, clock: Clock, shares: Sequence[GatewayShare]) -> None:
        """In the order in which they are preferred."""
        self._clock = clock
        self._shares = shares

    @property
    def current(self) -> GatewayShare:
        """The first that has failed lately neither for all nor for the organization; when all have, the last.

        Asking may begin the time of another gateway, and wake lanes (`has_failed`).
        """
        now = self._clock.monotonic()
        for share in self._shares[:-1]:
            if not share.gateway.has_failed(now) and not share.has_failed(now):
                return share
        return self._shares[-1]
