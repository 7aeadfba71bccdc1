"""The ways between the service and the simulated provider: what both are told, and how much goes wrong on each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.crash import sms
from tests.crash.traffic import CHAT_APP, Mail

Protocol = Literal["bridge", "cloud", "smpp"]

SHARES = {
    "slow-down": 0.001,
    "refuse": 0.02,
    "lost": 0.01,
    "error": 0.01,
    "duplicate": 0.1,
    "early": 0.1,
    "shuffle": 0.1,
    "unreferenced": 0.2,
    "undelivered": 0.03,
    "silent": 0.02,
}
# An unbind, which half of the lost answers are, ends a connection of all, and the next one comes ever later.
SMPP_SHARES = {**SHARES, "lost": 0.001, "error": 0.002, "unknown": 0.05, "malformed": 0.05}
BINDS, WINDOW = 3, 10
SMS_PER_SECOND = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the provider is, on 127.0.0.1, and what both sides know."""

    port: int
    token: str
    secret: str
    app_secret: str
    idempotent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """`settings`: of the service; `options`: of the simulator; `shares`: of its requests, what befalls them;
    `rate`: requests a second, as for `Traffic`.

    `per_second`: messages, where they leave through a gateway that is there, and not through numbers. `at_once`: calls
    that may be under way, None where only the paces say. `in_parts`: whether one message is several requests.
    """

    mail: Mail
    settings: Callable[[Place], Mapping[str, str]]
    options: Callable[[Place], Sequence[str]]
    shares: Mapping[str, float]
    rate: float = 170.0
    per_second: int | None = None
    at_once: int | None = None
    in_parts: bool = False


def _bridge_settings(place: Place) -> Mapping[str, str]:
    return {
        "ADAPTER_CHATAPP": "bridge",
        "BRIDGE_CHATAPP_URL": f"http://127.0.0.1:{place.port}",
        "BRIDGE_CHATAPP_TOKEN": place.token,
        "BRIDGE_CHATAPP_SECRET": place.secret,
        "BRIDGE_CHATAPP_IDEMPOTENT": str(place.idempotent).lower(),
    }


def _bridge_options(place: Place) -> Sequence[str]:
    idempotent = ("--idempotent",) if place.idempotent else ()
    return ("--listen", f"127.0.0.1:{place.port}", "--protocol", "bridge", *idempotent)


def _cloud_settings(place: Place) -> Mapping[str, str]:
    return {
        "ADAPTER_CHATAPP": "cloud",
        "CLOUD_URL": f"http://127.0.0.1:{place.port}/v24.0",
        "CLOUD_APP_SECRET": place.app_secret,
        "CLOUD_VERIFY_TOKEN": place.token,
    }


def _cloud_options(place: Place) -> Sequence[str]:
    return ("--listen", f"127.0.0.1:{place.port}", "--protocol", "cloud")


def _smpp_settings(place: Place) -> Mapping[str, str]:
    return {
        "ADAPTER_SMS": "smpp",
        "SMPP_URL": f"smpp://127.0.0.1:{place.port}",
        "SMPP_SYSTEM_ID": "recado",
        "SMPP_PASSWORD": place.token,
        "SMPP_SOURCE": sms.SOURCE,
        "SMPP_BINDS": str(BINDS),
        "SMPP_WINDOW": str(WINDOW),
        "SMS_GATEWAY_A_PER_SECOND": str(SMS_PER_SECOND),
    }


def _smpp_options(place: Place) -> Sequence[str]:
    return ("--listen", "127.0.0.1:0", "--smpp", f"127.0.0.1:{place.port}")


TRANSPORTS: Mapping[Protocol, Transport] = {
    "bridge": Transport(mail=CHAT_APP, settings=_bridge_settings, options=_bridge_options, shares=SHARES),
    "cloud": Transport(mail=CHAT_APP, settings=_cloud_settings, options=_cloud_options, shares=SHARES),
    "smpp": Transport(
        mail=sms.SMS,
        settings=_smpp_settings,
        options=_smpp_options,
        shares=SMPP_SHARES,
        rate=80.0,  # all go through one gateway, and one caller has half of its window
        per_second=SMS_PER_SECOND,
        at_once=BINDS * WINDOW,
        in_parts=True,
    ),
}
