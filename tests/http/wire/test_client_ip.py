"""Who calls, directly or through proxies."""

from ipaddress import ip_network

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from recado.http.wire.client_ip import ClientAddresses, within

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def headers(*values: str) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict([("X-Forwarded-For", value) for value in values]))


@pytest.mark.parametrize(
    ("peer", "hops", "client"),
    [
        ("192.0.2.7", ["198.51.100.1"], "192.0.2.7"),  # not a proxy: what it claims counts for nothing
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["1.1.1.1, 198.51.100.1, 10.9.9.9"], "198.51.100.1"),
        ("10.0.0.1", ["1.1.1.1", "198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["10.0.0.2, 10.0.0.3"], "10.0.0.2"),
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("10.0.0.1", ["[2001:db8::1]:443"], "2001:db8::1"),
        ("10.0.0.1", ["2001:db8::1"], "2001:db8::1"),
        ("10.0.0.1", ["6.6.6.6, rubbish"], "10.0.0.1"),
        ("::ffff:10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("fd00::1", ["198.51.100.1"], "198.51.100.1"),
        ("", ["198.51.100.1"], ""),
    ],
)
def test_the_last_hop_that_is_not_a_trusted_proxy_is_the_client(peer: str, hops: list[str], client: str) -> None:
    assert ClientAddresses(PROXIES).resolve(peer, headers(*hops)) == client


def test_without_trusted_proxies_the_header_is_not_read() -> None:
    assert ClientAddresses().resolve("10.0.0.1", headers("198.51.100.1")) == "10.0.0.1"


def test_a_mapped_address_lies_in_the_network_of_what_it_maps() -> None:
    assert within("::ffff:192.0.2.9", (ip_network("192.0.2.0/24"),))
    assert not within("192.0.2.9", (ip_network("2001:db8::/32"),))
    assert not within("not an address", (ip_network("0.0.0.0/0"),))
