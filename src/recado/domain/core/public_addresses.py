"""Which network addresses the service may call when a customer names them: public ones, by explicit lists (C30.6).

The standard library's `is_global` calls several ranges public that are not, so it is only one of two opinions here.
"""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

Network = IPv4Network | IPv6Network

_REFUSED_V4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, cloud metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments, 192.0.0.192 among them
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_GLOBAL_V6: Final = IPv6Network("2000::/3")  # all that is handed out; loopback, ULA, link- and site-local lie outside
_REFUSED_V6: Final = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")


@lru_cache(maxsize=4096)
def is_public(address: str) -> bool:
    """Whether an address is one of the open internet; of one that wraps an IPv4 address, that one is asked."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv4Address):
        return _public_v4(found)
    if found.ipv4_mapped is not None:
        return False  # no name of the internet resolves to one; only tricks do
    if found in _NAT64:
        return _public_v4(IPv4Address(int(found) & 0xFFFF_FFFF))
    if found in _SIX_TO_FOUR:
        return _public_v4(IPv4Address(int(found) >> 80 & 0xFFFF_FFFF))
    return found in _GLOBAL_V6 and found.is_global and not any(found in network for network in _REFUSED_V6)


def _public_v4(address: IPv4Address) -> bool:
    return address.is_global and not any(address in network for network in _REFUSED_V4)


def lies_in(address: str, networks: Iterable[Network]) -> bool:
    """Whether an address lies in one of the networks; an IPv4-mapped one by the address that it stands for."""
    try:
        found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return any(found.version == network.version and found in network for network in networks)
