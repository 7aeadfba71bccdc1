"""Which addresses are public (C30.6)."""

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.public_addresses import is_public, lies_in

PRIVATE = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1",
    "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:8.8.8.8",
    "::ffff:0:8.8.8.8", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::8.8.8.8",
    "2002:7f00:1::", "2002:a9fe:a9fe::", "2002:0a00:0001::1", "2002:c0a8:0101::1", "2001::1", "2001:0:7f00:1::",
    "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "3fff::1", "fc00::1", "fd00:ec2::254", "fe80::1",
    "fe80::1%eth0", "fec0::1", "ff02::1", "100::1", "5f00::1", "4000::1", "localhost", "", "1.2.3", "0177.0.0.1",
    "2130706433", "0x7f.0.0.1",
]  # fmt: skip
PUBLIC = [
    "1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "198.17.0.1",
    "198.20.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::1", "64:ff9b::8.8.8.8", "2002:808:808::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_of_the_open_internet_is_refused(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_open_internet_is_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_no_wrapping_makes_a_private_address_public(inner: IPv4Address) -> None:
    for wrapped in (
        IPv6Address(0x64_FF9B << 96 | int(inner)),
        IPv6Address(0x2002 << 112 | int(inner) << 80 | 1),
        IPv6Address(0xFFFF << 32 | int(inner)),
        IPv6Address(int(inner)),
    ):
        assert not is_public(str(wrapped)) or is_public(str(inner))


def test_an_opened_network_holds_its_addresses_also_as_mapped_ones() -> None:
    loopback = (ip_network("127.0.0.0/8"), ip_network("::1"))
    assert all(lies_in(address, loopback) for address in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"))
    assert not any(lies_in(address, loopback) for address in ("128.0.0.1", "::2", "2002:7f00:1::", "localhost"))
