"""What name servers say of a domain, whatever they send (C10.4)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest

from recado.channels.core.errors import ProviderError
from recado.channels.email.dns_proof import DnsProof
from recado.channels.email.txt_records import TxtRecords
from recado.domain.email.sender import DnsRecord, SenderLook

NAME = "_svc.example.com"
Answer = Callable[[dns.message.Message], bytes | None]


class _Server(asyncio.DatagramProtocol):
    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        answer = self._answer(dns.message.from_wire(data))
        if answer is not None:
            self._transport.sendto(answer, address)


@asynccontextmanager
async def asked(answer: Answer) -> AsyncIterator[TxtRecords]:
    """Who asks a name server that answers so."""
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Server(answer), local_addr=("127.0.0.1", 0)
    )
    try:
        yield TxtRecords(servers=["127.0.0.1"], port=transport.get_extra_info("sockname")[1])
    finally:
        transport.close()


def with_texts(*texts: str, name: str = NAME) -> Answer:
    def answer(question: dns.message.Message) -> bytes:
        found = dns.message.make_response(question)
        quoted = [" ".join(f'"{text[start : start + 255]}"' for start in range(0, len(text), 255)) for text in texts]
        found.answer.append(dns.rrset.from_text(f"{name}.", 60, "IN", "TXT", *quoted))
        return found.to_wire()

    return answer


def with_rcode(rcode: dns.rcode.Rcode) -> Answer:
    def answer(question: dns.message.Message) -> bytes:
        found = dns.message.make_response(question)
        found.set_rcode(rcode)
        return found.to_wire()

    return answer


async def test_the_texts_under_a_name_are_read() -> None:
    long = "x" * 600
    async with asked(with_texts("svc-verify=1", "other", long)) as records:
        assert sorted(await records.texts(NAME, "org")) == sorted(["svc-verify=1", "other", long])


async def test_a_name_that_does_not_exist_has_none() -> None:
    async with asked(with_rcode(dns.rcode.NXDOMAIN)) as records:
        assert await records.texts(NAME, "org") == []


@pytest.mark.parametrize(
    "answer",
    [
        with_rcode(dns.rcode.SERVFAIL),
        with_rcode(dns.rcode.REFUSED),
        lambda _: b"rubbish",
        lambda question: question.to_wire()[:12],
    ],
)
async def test_who_does_not_answer_says_nothing(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recado.channels.email.txt_records.EACH_SECONDS", 0.2)
    async with asked(answer) as records:
        with pytest.raises(ProviderError) as caught:
            await records.texts(NAME, "org")
    assert (caught.value.kind, caught.value.code) == ("unreachable", "dns_unavailable")


async def test_of_a_truncated_answer_what_came_is_read() -> None:
    def answer(question: dns.message.Message) -> bytes:
        found = dns.message.from_wire(with_texts("svc-verify=1")(question) or b"")
        found.flags |= dns.flags.TC
        return found.to_wire()

    async with asked(answer) as records:
        assert await records.texts(NAME, "org") == ["svc-verify=1"]


async def test_a_domain_is_proven_by_its_own_token_alone() -> None:
    async with asked(with_texts("svc-verify=2", " svc-verify=1", "svc-verify=12")) as records:
        proof = DnsProof(records)
        entered = proof.proofs("example.com", "2")
        assert await proof.sender_status("example.com", entered, "org") == SenderLook(found(entered), True)
        asked_for = proof.proofs("example.com", "1")
        assert asked_for == (DnsRecord("TXT", NAME, "svc-verify=1"),)
        assert await proof.sender_status("example.com", asked_for, "org") == SenderLook(asked_for, False)


CNAME = DnsRecord("CNAME", "a._domainkey.example.com", "a.dkim.example.net", found=True)


def found(records: tuple[DnsRecord, ...]) -> tuple[DnsRecord, ...]:
    return tuple(replace(each, found=True) for each in records)


class Identities:
    """A provider that says what a test says of any domain, and who was asked for."""

    def __init__(self, told: SenderLook | None, *, only_looks: bool = False) -> None:
        self._told = told
        self.only_looks = only_looks
        self.asked: list[tuple[str, str]] = []

    async def identity(self, domain: str, owner: str, *, address: str | None = None) -> SenderLook | None:
        self.asked.append((domain, owner))
        return self._told


@pytest.mark.parametrize(
    ("told", "records", "proven"),
    [(None, (), True), (SenderLook((CNAME,), True), (CNAME,), True), (SenderLook((CNAME,), False), (CNAME,), False)],
)
async def test_whose_a_domain_is_the_name_server_says_and_whether_it_is_sent_from_the_provider(
    told: SenderLook | None, records: tuple[DnsRecord, ...], proven: bool
) -> None:
    provider = Identities(told)
    async with asked(with_texts("svc-verify=2")) as server:
        proof = DnsProof(server, provider)
        of_another = proof.proofs("example.com", "1")
        assert await proof.sender_status("example.com", of_another, "thief") == SenderLook(of_another, False)
        assert provider.asked == []  # who does not own it makes nothing there
        own = proof.proofs("example.com", "2")
        look = await proof.sender_status("example.com", own, "org")
    assert look == SenderLook((*found(own), *records), proven)
    assert provider.asked == [("example.com", "org")]


@pytest.mark.parametrize("proven", [True, False, None])
async def test_a_provider_that_only_looks_shows_its_records_before_the_owner_is_proven(proven: bool | None) -> None:
    provider = Identities(SenderLook((CNAME,), proven, untold=proven is False), only_looks=True)
    async with asked(with_texts("svc-verify=2")) as server:
        proof = DnsProof(server, provider)
        missing = proof.proofs("example.com", "1")
        look = await proof.sender_status("example.com", missing, "org")
        assert look == SenderLook((*missing, CNAME), False, untold=proven is False)
        own = proof.proofs("example.com", "2")
        assert (await proof.sender_status("example.com", own, "org")).proven is proven
