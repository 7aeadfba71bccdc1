"""What a subscription's actor is told."""

from dataclasses import dataclass

from recado.channels.http.guarded_http import Response
from recado.storage.webhooks.deliveries import Due
from recado.storage.webhooks.webhooks import HealthNote


@dataclass(frozen=True, slots=True)
class DeliveriesDue:
    """Something is due."""


@dataclass(frozen=True, slots=True)
class DeliveriesCommitted:
    """These deliveries were just committed."""

    delivery_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscriptionEdited:
    """The subscription was changed."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """A timer: a pause is over, or something is to be written."""


@dataclass(slots=True, eq=False)
class AttemptEnded:
    """An attempt has ended. `url`: where it went, which may be the subscription's no more; None: nowhere."""

    due: Due
    response: Response
    probe: bool
    url: str | None


@dataclass(frozen=True, slots=True)
class ResultsWritten:
    """Results of attempts are written, or will not be."""


@dataclass(frozen=True, slots=True)
class DeliveriesRead:
    """Deliveries were read; None: the database is away."""

    rows: tuple[Due, ...] | None
    more: bool
    probe: bool = False


@dataclass(frozen=True, slots=True)
class HealthWritten:
    """The health is written; `stood` False: the status was changed by another; None: it is not written."""

    note: HealthNote
    stood: bool | None
