"""Request limits per class (C6.1), and their ceilings: the defaults, and the text form in which they are changed."""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple


class RequestLimit(NamedTuple):
    """A token bucket: `refill` tokens a second, at most `capacity` of them."""

    refill: float
    capacity: int


DEFAULT_LIMITS: Mapping[str, RequestLimit] = {
    "read": RequestLimit(500, 1_000),
    "write": RequestLimit(200, 400),
    "send": RequestLimit(5_000, 10_000),
    "bulk": RequestLimit(50, 100),
    "media": RequestLimit(50, 100),
    "device": RequestLimit(2_000, 4_000),
    "public": RequestLimit(50, 100),
    "login": RequestLimit(10 / 60, 10),
    # Failed credentials, per client address: never at the cost of valid ones.
    "failed": RequestLimit(50, 50),
    # What anyone may ask for, per client address: a page of the documentation is five requests.
    "anonymous": RequestLimit(50, 200),
}

CLASSES_OF_CREDENTIALS = ("read", "write", "send", "bulk", "media", "device")
"""Those that are counted by who calls, not by where from: a key may have a limit of its own in them."""

CEILING_FACTOR = 4
"""The ceiling of a class that is given none, in times its limit."""

_ENTRY = re.compile(r"(?P<name>[a-z]+)=(?P<refill>\d+(?:\.\d+)?)/(?P<capacity>\d+)")


def parse_limits(text: str | Mapping[str, RequestLimit]) -> Mapping[str, RequestLimit]:
    """Return the limits of every class: those of `text` (`read=500/1000,send=5000/10000`) over the defaults.

    Raises ValueError with what is wrong: an entry of another form, an unknown class, or a bucket that never fills.
    """
    return text if isinstance(text, Mapping) else {**DEFAULT_LIMITS, **_given(text, DEFAULT_LIMITS)}


def parse_limits_of_credentials(text: str | Mapping[str, RequestLimit]) -> Mapping[str, RequestLimit]:
    """Return the limits in `text`, of the same form, and no others; raises ValueError as `parse_limits` does."""
    return text if isinstance(text, Mapping) else _given(text, CLASSES_OF_CREDENTIALS)


def ceilings(limits: Mapping[str, RequestLimit], given: Mapping[str, RequestLimit]) -> Mapping[str, RequestLimit]:
    """Return the ceiling of each class of credentials: what is `given`, else four times its limit."""
    return {
        name: given.get(name)
        or RequestLimit(limits[name].refill * CEILING_FACTOR, limits[name].capacity * CEILING_FACTOR)
        for name in CLASSES_OF_CREDENTIALS
    }


def _given(text: str, classes: Collection[str]) -> dict[str, RequestLimit]:
    limits: dict[str, RequestLimit] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise ValueError(f"{entry!r} is not of the form class=refill/capacity")
        if match["name"] not in classes:
            raise ValueError(f"{match['name']!r} is no class of requests here ({', '.join(classes)})")
        limit = RequestLimit(float(match["refill"]), int(match["capacity"]))
        if limit.refill <= 0 or limit.capacity < 1:
            raise ValueError(f"{entry!r} would refuse every request")
        limits[match["name"]] = limit
    return limits
