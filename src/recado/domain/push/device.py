"""Devices: how one stands, and what a registration makes of one that is there (C22.2)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from recado.domain.core.machine import Machine

PLATFORMS: Final = ("ios", "android", "web")
IOS: Final = "ios"
ANDROID: Final = "android"
WEB: Final = "web"
LONGEST_TOKEN: Final = 4_096  # characters
LONGEST_TEXT: Final = 255
MOST_TOPICS: Final = 50
LONGEST_TOPIC: Final = 64


class DeviceStatus(StrEnum):
    """Only `registered` ones are reached."""

    REGISTERED = "registered"
    OPTED_OUT = "opted_out"
    INVALID = "invalid"


class DeviceEvent(StrEnum):
    """What moves a device. The comments name who does."""

    OPENED = "registered"  # its app, at each start: without a word on consent
    OPTED_IN = "opted in"  # its app, with `optedIn` true
    OPTED_OUT = "opted out"  # its app, by the opt-out or with `optedIn` false
    UNREGISTERED = "unregistered"  # the provider, which knows the token no more


_S = DeviceStatus
_E = DeviceEvent

DEVICE_MACHINE: Final = Machine(
    "push device",
    {
        (_S.REGISTERED, _E.OPENED): _S.REGISTERED,
        (_S.REGISTERED, _E.OPTED_IN): _S.REGISTERED,
        (_S.REGISTERED, _E.OPTED_OUT): _S.OPTED_OUT,
        (_S.REGISTERED, _E.UNREGISTERED): _S.INVALID,
        (_S.OPTED_OUT, _E.OPENED): _S.OPTED_OUT,
        (_S.OPTED_OUT, _E.OPTED_IN): _S.REGISTERED,
        (_S.OPTED_OUT, _E.OPTED_OUT): _S.OPTED_OUT,
        (_S.INVALID, _E.OPENED): _S.REGISTERED,
        (_S.INVALID, _E.OPTED_IN): _S.REGISTERED,
        (_S.INVALID, _E.OPTED_OUT): _S.OPTED_OUT,
    },
    initial={"registered": _S.REGISTERED, "registered, opted out": _S.OPTED_OUT},
)


def registering(opted_in: bool | None) -> DeviceEvent:
    """What a registration says. Absent, it never revives a device that opted out: apps call at each start (C1.17)."""
    if opted_in is None:
        return DeviceEvent.OPENED
    return DeviceEvent.OPTED_IN if opted_in else DeviceEvent.OPTED_OUT


def registered(status: DeviceStatus | None, opted_in: bool | None) -> DeviceStatus:
    """The status after a registration; `status` None: the device is new."""
    if status is None:
        return DeviceStatus.OPTED_OUT if opted_in is False else DeviceStatus.REGISTERED
    return DEVICE_MACHINE.move(status, registering(opted_in))


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose a device is: the contact it is linked to, and the caller's own id."""

    contact_id: str | None
    external_id: str | None


def identified(before: Identity, given: Identity, found_id: str | None) -> Identity:
    """Whose a device is after a registration. `found_id`: the contact with the given external id, if there is one.

    A contact that is named wins; another external id links to its contact, or to nobody; what is absent changes
    nothing.
    """
    external_id = given.external_id or before.external_id
    if given.contact_id is not None:
        return Identity(given.contact_id, external_id)
    if given.external_id is None:
        return before
    if given.external_id == before.external_id:
        return Identity(before.contact_id or found_id, external_id)
    return Identity(found_id, external_id)
