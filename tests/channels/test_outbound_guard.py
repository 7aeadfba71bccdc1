"""The guard (C30.6): which URLs may be subscribed, and that a name is asked again before each call."""

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from ipaddress import ip_network

import pytest
from tests.waiting import PATIENCE, until

from recado.channels.http import outbound_guard
from recado.channels.http.outbound_guard import (
    REFUSED_AFTER,
    NameRefused,
    OutboundGuard,
    ParsedUrl,
    UrlRefused,
    same_origin,
    target_of,
)
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.shares.fair_places import FairPlaces

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
PUBLIC = "93.184.216.34"


class Names:
    """A name server of the test."""

    def __init__(self, **answers: Sequence[str]) -> None:
        self.answers = {name.replace("_", "."): list(addresses) for name, addresses in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.answers:
            raise OSError("no such name")
        return self.answers[host]


class Passing(VirtualClock):
    """Time that passes while somebody sleeps."""

    async def sleep(self, seconds: float) -> None:
        await self.advance(seconds)


def guard(names: Names, *allowed: str, clock: VirtualClock | None = None) -> OutboundGuard:
    networks = tuple(ip_network(text) for text in allowed)
    return OutboundGuard(clock=clock or Passing(START), allowed=networks, lookup=names)


REFUSED = [
    "", "example.com", "//example.com/", "ftp://example.com/", "javascript:alert(1)", "https://", "https:///x",
    "https://user@example.com/", "https://user:secret@example.com/", "https://@example.com/",
    "https://example.com/#part", "https://example.com/#", "https://example.com:0x1bb/", "https://example.com:99999/",
    "https://example.com:22/", "https://example.com:80/", "https://example.com:1023/",
    "https://127.0.0.1/", "https://93.184.216.34/", "https://[::1]/", "https://[2606:4700::1111]/",
    "https://[::ffff:127.0.0.1]/", "https://[fe80::1%25eth0]/", "https://[v1.x]/",
    "https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/", "https://0x7f.1/", "https://127.1/",
    "https://127.0.0.1.:443/", "https://１２７.０.０.１/", "https://①②⑦.⓪.⓪.①/", "https://%31%32%37.0.0.1/",
    "https://localhost/", "https://localhost./", "https://a.localhost/", "https://printer.local/", "https://x.internal/",
    "https://metadata.google.internal/", "https://intranet/", "https://db.home.arpa/",
    "https://example.com\\@127.0.0.1/", "https://example.com /", "https://exa\tmple.com/", "https://exa\nmple.com/",
    "https://example..com/", "https://-a.com/", f"https://{'a' * 64}.com/", f"https://example.com/{'a' * 2048}",
]  # fmt: skip


@pytest.mark.parametrize("url", REFUSED)
async def test_a_url_of_another_form_is_refused_before_anything_is_asked(url: str) -> None:
    names = Names()
    with pytest.raises(UrlRefused):
        await guard(names).check(url, live=True)
    assert names.asked == []


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "http://127.0.0.1:9000/", "http://localhost:9000/"])
@pytest.mark.parametrize("allowed", [(), ("192.168.0.0/16",)])
async def test_who_names_a_private_host_hears_how_an_operator_may_open_it(url: str, allowed: tuple[str, ...]) -> None:
    answers = set()
    for addresses in ([], ["127.0.0.1"], [PUBLIC]):
        names = Names(localhost=addresses)
        with pytest.raises(UrlRefused, match="the operator may open networks with RECADO_SSRF_ALLOW_CIDRS") as refused:
            await guard(names, *allowed, clock=Passing(START)).check(url, live=False)
        answers.add(str(refused.value))
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("https://example.com", "example.com", 443, "/"),
        ("https://EXAMPLE.com./a?b=c", "example.com", 443, "/a?b=c"),
        ("https://example.com:8443/x//y", "example.com", 8443, "/x//y"),
        ("https://bücher.example/ü?ü", "xn--bcher-kva.example", 443, "/%C3%BC?%C3%BC"),
        ("https://a_b.example.com?x", "a_b.example.com", 443, "/?x"),
    ],
)
async def test_a_public_url_is_taken_apart(url: str, host: str, port: int, path: str) -> None:
    names = Names()
    names.answers[host] = [PUBLIC]
    target = await guard(names).check(url, live=True)
    assert (target.host, target.port, target.path) == (host, port, path)


async def test_plain_http_is_for_test_only() -> None:
    names = Names(example_com=[PUBLIC])
    await guard(names).check("http://example.com/", live=False)
    await guard(names).check("http://example.com:8080/", live=False)
    for url in ("http://example.com/", "http://example.com:8080/"):
        with pytest.raises(UrlRefused):
            await guard(names).check(url, live=True)


@pytest.mark.parametrize(
    "addresses",
    [["10.0.0.1"], [PUBLIC, "10.0.0.1"], ["::1"], [PUBLIC, "::ffff:169.254.169.254"], ["64:ff9b::a9fe:a9fe"], []],
)
async def test_a_name_is_refused_unless_every_address_of_it_is_public(addresses: list[str]) -> None:
    with pytest.raises(UrlRefused) as refused:
        await guard(Names(example_com=addresses)).check("https://example.com/", live=True)
    assert not any(address in str(refused.value) for address in addresses)


@pytest.mark.parametrize("allowed", [(), ("127.0.0.0/8",)])
@pytest.mark.parametrize("host", ["secret.example.com", "intranet"])
async def test_a_name_that_exists_inside_is_refused_as_one_that_nobody_knows(
    host: str, allowed: tuple[str, ...]
) -> None:
    answers, moments = [], []
    for inside in ({}, {host: ["10.0.0.1"]}, {host: []}, {host: ["10.0.0.1", PUBLIC]}):
        names, clock = Names(), Passing(START)
        names.answers |= inside
        with pytest.raises(UrlRefused) as refused:
            await guard(names, *allowed, clock=clock).check(f"https://{host}/", live=True)
        answers.append(str(refused.value))
        moments.append(clock.monotonic())
    assert len(set(answers)) == 1
    asked = "." in host or bool(allowed)
    assert moments == [REFUSED_AFTER if asked else 0.0] * 4


async def test_a_name_is_asked_again_before_the_next_second_of_calls() -> None:
    clock, names = VirtualClock(START), Names(example_com=[PUBLIC])
    watched = guard(names, clock=clock)
    target = await watched.check("https://example.com/", live=True)
    for _ in range(3):
        assert await watched.addresses(target, live=True) == (PUBLIC,)
    assert len(names.asked) == 1
    names.answers["example.com"] = ["127.0.0.1"]  # rebinding
    await clock.advance(1.0)
    with pytest.raises(UrlRefused):
        await watched.addresses(target, live=True)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/", "http://127.0.0.1/", "https://127.9.9.9:22/", "http://[::ffff:127.0.0.1]:9/",
        "http://localhost:9000/", "http://hooks.internal/", "http://intranet:81/",
    ],
)  # fmt: skip
async def test_what_the_operator_opened_is_accepted_on_any_port_and_without_tls(url: str) -> None:
    local = ["127.0.0.1"]
    names = Names(localhost=local, hooks_internal=local, intranet=local)
    await guard(names, "127.0.0.0/8").check(url, live=True)
    assert names.asked == [host for host in names.answers if host in url]


@pytest.mark.parametrize(
    "url",
    ["http://128.0.0.1/", "http://[::1]/", "http://2130706433/", "http://0x7f.1/", "http://mixed.example.com/",
     "https://mixed.example.com/", "http://user@127.0.0.1/", "http://127.0.0.1/#x"],
)  # fmt: skip
async def test_nothing_beside_it_is_opened(url: str) -> None:
    names = Names(mixed_example_com=["127.0.0.1", PUBLIC])
    with pytest.raises(UrlRefused):
        await guard(names, "127.0.0.0/8").check(url, live=True)


async def test_a_public_name_is_still_public_where_a_network_is_opened() -> None:
    names = Names(example_com=[PUBLIC])
    await guard(names, "127.0.0.0/8").check("https://example.com/", live=True)
    assert names.asked == ["example.com"]


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("https://EXAMPLE.com:443/b?c", True),
        ("https://example.com./", True),
        ("https://example.com:8443/a", False),
        ("http://example.com/a", False),
        ("https://www.example.com/a", False),
        ("https://user@example.com/a", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(other: str, same: bool) -> None:
    assert same_origin("https://example.com/a", other) is same


def test_no_text_breaks_the_reading() -> None:
    source = random.Random(1)
    for _ in range(3_000):
        text = "https://" + "".join(source.choice("abc.:/@[]%?#\\0x１ü\x00 -") for _ in range(source.randrange(12)))
        try:
            target = target_of(text)
        except UrlRefused:
            continue
        assert target.path.startswith("/")
        assert target.path.isascii()


class SilentNames:
    """A name server that does not answer for names of `silent.example` before it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer = asyncio.Event()

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host.endswith("silent.example"):
            await self.answer.wait()
            raise OSError("no answer")
        return [PUBLIC]


async def test_a_silent_name_server_keeps_only_its_own_organization_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbound_guard, "LOOKUP_LIMIT", 0.3)  # real time: what is silent is waited for so long
    monkeypatch.setattr(outbound_guard, "REFUSED_AFTER", 0.0)
    names, places = SilentNames(), FairPlaces(6, each=2, most_waiting=3)
    shared = OutboundGuard(clock=SystemClock(), lookup=names, turn=places.place)

    async def ask(host: str, owner: str) -> bool:
        try:
            await shared.check(f"https://{host}/", live=True, owner=owner)
        except UrlRefused:
            return False
        return True

    async def served(host: str, owner: str) -> bool:
        with monkeypatch.context() as patient:
            patient.setattr(outbound_guard, "LOOKUP_LIMIT", PATIENCE)  # whose turn comes waits for nobody's silence
            return await ask(host, owner)

    silent = [f"h{number}.silent.example" for number in range(8)]
    assert not any(await asyncio.gather(*(ask(host, "org_a") for host in silent)))
    assert names.asked == silent[:2]  # no more than its share; more than three do not even wait
    assert await served("hooks.example.com", "org_b")
    # What was silent is known by now: it has a share of its own, and the organization's other names are resolved.
    names.answer.set()
    assert not any(await asyncio.gather(*(ask(host, "org_a") for host in silent[:2])))
    names.answer.clear()
    assert not any(await asyncio.gather(*(ask(host, "org_a") for host in silent[:2])))
    assert await served("hooks.example.org", "org_a")
    names.answer.set()


async def test_a_name_that_waits_in_a_full_line_is_looked_up_at_once_for_another_organization(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbound_guard, "LOOKUP_LIMIT", 2 * PATIENCE)
    names, places = SilentNames(), FairPlaces(6, each=2, most_waiting=3)
    shared = OutboundGuard(clock=SystemClock(), lookup=names, turn=places.place)

    def ask(host: str, owner: str) -> "asyncio.Task[ParsedUrl]":
        return asyncio.create_task(shared.check(f"https://{host}/", live=True, owner=owner))

    async with asyncio.timeout(PATIENCE):  # below the limit of a look-up
        silent = [ask(f"h{number}.silent.example", "org_a") for number in range(2)]
        waits = ask("hooks.example.com", "org_a")
        await until(lambda: len(names.asked) == 2, "the first organization's line is full")
        assert (await ask("hooks.example.com", "org_b")).host == "hooks.example.com"
        assert not waits.done()
        names.answer.set()
        assert (await waits).host == "hooks.example.com"
        refused = await asyncio.gather(*silent, return_exceptions=True)
    assert all(isinstance(each, NameRefused) for each in refused)
