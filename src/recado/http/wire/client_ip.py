"""The caller's address: the peer, or what trusted proxies say about it."""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from multidict import CIMultiDictProxy

Network = IPv4Network | IPv6Network


class ClientAddresses:
    """Resolves callers behind `trusted` reverse proxies (networks); without any, `X-Forwarded-For` is not read."""

    def __init__(self, trusted: Sequence[Network] = ()) -> None:
        self._trusted = tuple(trusted)
        self._is_trusted = lru_cache(maxsize=4096)(self._check)

    def resolve(self, peer: str, headers: CIMultiDictProxy[str]) -> str:
        """Return the caller's address: the last hop that is not one of the trusted proxies."""
        if not self._trusted or not self._is_trusted(peer):
            return peer
        client = peer
        hops = ",".join(headers.getall("X-Forwarded-For", ())).split(",")
        for hop in reversed(hops):
            address = _address(hop)
            if address is None:
                break
            client = address
            if not self._is_trusted(address):
                break
        return client

    def trusts(self, address: str) -> bool:
        """Whether `address` is that of a trusted proxy."""
        return bool(self._trusted) and self._is_trusted(address)

    def _check(self, address: str) -> bool:
        return within(address, self._trusted)


def network_of(address: str) -> str:
    """Return what one caller without a credential has: an IPv4 address, or the /64 around an IPv6 one."""
    return address if ":" not in address else _network_of(address)


@lru_cache(maxsize=4096)
def _network_of(address: str) -> str:
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    mapped = getattr(ip, "ipv4_mapped", None)
    return str(mapped or ip_network((ip, 64), strict=False).network_address)


def within(address: str, networks: Sequence[Network]) -> bool:
    """Whether `address` lies in one of `networks`; an IPv4 address counts also when written as mapped IPv6."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    mapped = getattr(ip, "ipv4_mapped", None)
    ip = mapped or ip
    return any(ip.version == network.version and ip in network for network in networks)


def _address(hop: str) -> str | None:
    """The address in one entry of the header, which may carry a port; None when there is none."""
    text = hop.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ip_address(text))
    except ValueError:
        return None
