"""Request limits per class (C6.1): the defaults, and the text form in which an installation changes them."""

import re
from collections.abc import Mapping
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

_ENTRY = re.compile(r"(?P<name>[a-z]+)=(?P<refill>\d+(?:\.\d+)?)/(?P<capacity>\d+)")


def parse_limits(text: str | Mapping[str, RequestLimit]) -> Mapping[str, RequestLimit]:
    """Return the limits of every class: those of `text` (`read=500/1000,send=5000/10000`) over the defaults.

    Raises ValueError with what is wrong: an entry of another form, an unknown class, or a bucket that never fills.
    """
    if isinstance(text, Mapping):
        return text
    limits = dict(DEFAULT_LIMITS)
    for entry in filter(None, (part.strip() for part in text.split(","))):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise ValueError(f"{entry!r} is not of the form class=refill/capacity")
        if match["name"] not in DEFAULT_LIMITS:
            raise ValueError(f"{match['name']!r} is no class of requests ({', '.join(DEFAULT_LIMITS)})")
        limit = RequestLimit(float(match["refill"]), int(match["capacity"]))
        if limit.refill <= 0 or limit.capacity < 1:
            raise ValueError(f"{entry!r} would refuse every request")
        limits[match["name"]] = limit
    return limits
