"""What the simulated provider is started with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from recado.simulator.behaviour import RequestShares
from recado.simulator.outbox import GATHER_SECONDS
from recado.simulator.smpp_centre import OddReceipts


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorOptions:
    """`latency`, `receipt_delay`: medians in seconds; `retry_after`: seconds; `port` 0 = any free one.

    `codes`: shares of the hosted API's error codes. `token`: the only bearer of the bridge and of the control; the
    hosted API lets every token in. `idempotent`: the bridge sends each `Idempotency-Key` once. `smpp`: where it listens
    as an SMS centre, whose password is `token`; `smtp`: where as a mail server, with the same password.
    """

    record: Path
    secret: str = field(repr=False)
    app_secret: str | None = field(default=None, repr=False)  # None: the same secret
    token: str | None = field(default=None, repr=False)  # None: every bearer is welcome
    host: str = "127.0.0.1"
    port: int = 0
    protocol: Literal["bridge", "cloud", "both"] = "both"
    seed: int = 1
    callback_url: str | None = None  # for sends that name none
    cloud_callback_url: str | None = None  # of the hosted API, whose sends name none
    shares: RequestShares = field(default_factory=RequestShares)
    codes: Mapping[int, float] = field(default_factory=dict)
    latency: float = 0.0
    receipt_delay: float = 0.2
    retry_after: int = 1
    idempotent: bool = False
    smpp: tuple[str, int] | None = None
    smtp: tuple[str, int] | None = None
    odd_receipts: OddReceipts = field(default_factory=OddReceipts)
    gather_seconds: float = GATHER_SECONDS
