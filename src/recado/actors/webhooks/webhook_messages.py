"""What a subscription's actor is told."""

from dataclasses import dataclass

from recado.channels.http.guarded_http import Response
from recado.storage.webhooks.deliveries import Due
from recado.storage.webhooks.webhooks import HealthNote


@dataclass(frozen=True, slots=True)
class Look:
    """Something is due."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """These deliveries were just committed."""

    delivery_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """The subscription was changed."""


@dataclass(frozen=True, slots=True)
class Wake:
    """Time has passed."""


@dataclass(slots=True, eq=False)
class Answered:
    """An attempt has ended. `url`: where it went, which may be the subscription's no more; None: nowhere."""

    due: Due
    response: Response
    probe: bool
    url: str | None


@dataclass(frozen=True, slots=True)
class Settled:
    """Results of attempts are written, or will not be."""


@dataclass(frozen=True, slots=True)
class Refilled:
    """Deliveries were read; None: the database is away."""

    rows: tuple[Due, ...] | None
    more: bool
    probe: bool = False


@dataclass(frozen=True, slots=True)
class HealthNoted:
    """The health is written; `stood` False: the status was changed by another; None: it is not written."""

    note: HealthNote
    stood: bool | None
