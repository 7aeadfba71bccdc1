"""The guard of calls to addresses that customers give: which URLs, and which addresses behind their names (C30.6).

Names are resolved here, before each call, and the call goes to what was checked; nobody else resolves them again.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from yarl import URL

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.core.public_addresses import Network, is_public, lies_in

LONGEST_URL = 2_048
LOOKUP_LIMIT = 5.0  # seconds
# Thousands of calls in one second share a look-up; a change of the name holds in the next one.
LOOKUP_KEPT = 1.0
# Seconds: a name that does not exist takes longer to find out than one that stands in the network of the installation.
REFUSED_AFTER = 0.5
_KEPT_NAMES = 10_000
LOOKUPS_AT_ONCE = 64  # a name server that does not answer blocks one of them for each of its names
_SILENT_NAMES = 10_000
_SILENT_AFTER = 0.9  # of the limit: who waited began to wait a moment before the look-up did, and gave up before it
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
# What some libraries read as an IPv4 address: decimal, octal and hexadecimal numbers as the last label.
_NUMERIC_END = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$")
_LOCAL_ENDS = (".local", ".internal", ".localhost", ".localdomain", ".home.arpa")

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]
Turn = Callable[[str], AbstractAsyncContextManager[None]]
"""Holds one of an owner's places; raises Unavailable when too many wait for theirs."""


class UrlRefused(Exception):
    """The URL, or what its name stands for, may not be called; the text says why and names no address."""


class NameRefused(UrlRefused):
    """Refused for what the name server said. One text for all: anyone who asks learns nothing of names inside."""


class NameUnknown(NameRefused):
    """The name has no address, or none can be learned now: at another time it may."""


class LookupsBusy(UrlRefused):
    """Too many names of the same organization are being resolved: this one was not asked for."""


_OPENED_WITH = "the operator may open networks with RECADO_SSRF_ALLOW_CIDRS"
NOT_PUBLIC = f"its name does not exist, or leads to addresses that are not public ({_OPENED_WITH})"


@dataclass(frozen=True, slots=True)
class ParsedUrl:
    """A URL taken apart. `host`: lower case, without brackets; `literal`: it is an IP address."""

    scheme: str
    host: str
    port: int
    path: str  # with the query
    literal: bool

    @property
    def authority(self) -> str:
        """The value of the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


_PORTS = {"http": 80, "https": 443}


def target_of(url: str, *, longest: int = LONGEST_URL) -> ParsedUrl:
    """The URL taken apart; raises UrlRefused when it has not the form of one that may be called anywhere."""
    if len(url) > longest:
        raise UrlRefused(f"it is longer than {longest:,} characters")
    if not url.isascii():
        try:
            url = str(URL(url))
        except (ValueError, IndexError):  # the latter for brackets around nothing
            raise UrlRefused("it is not a URL") from None
    if not _VISIBLE.fullmatch(url) or "\\" in url:
        raise UrlRefused("it holds characters that no URL has")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UrlRefused("it is not a URL") from None
    scheme = parts.scheme
    if scheme not in _PORTS:
        raise UrlRefused("its scheme is not https")
    if "@" in parts.netloc:
        raise UrlRefused("it names a user")
    if "#" in url:
        raise UrlRefused("it has a fragment")
    host = (parts.hostname or "").removesuffix(".")
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    literal = parts.netloc.startswith("[") or _is_address(host)
    if literal:
        if not _is_address(host) or "%" in host:
            raise UrlRefused("its host is not an address")
    elif not host or len(host) > 253 or not _HOST.fullmatch(host):
        raise UrlRefused("its host is not a name")
    elif _NUMERIC_END.search(host):
        raise UrlRefused("its host is a number")
    return ParsedUrl(scheme, host, _PORTS[scheme] if port is None else port, path, literal)


def same_origin(one: str, other: str) -> bool:
    """Whether two URLs name the same scheme, host and port; False where one is no URL that may be called."""
    try:
        first, second = target_of(one), target_of(other)
    except UrlRefused:
        return False
    return (first.scheme, first.host, first.port) == (second.scheme, second.host, second.port)


def form_fault(target: ParsedUrl, *, live: bool) -> str | None:
    """Why a URL is none of the open internet by its form alone; None when it is one. `live`: http is not enough."""
    if live and target.scheme != "https":
        return "its scheme is not https"
    if target.port < 1024 and target.port not in (443, _PORTS[target.scheme]):
        return "its port is neither 443 nor 1024 or above"
    if target.literal:
        return f"its host is an IP address, give a name ({_OPENED_WITH})"
    if "." not in target.host or target.host.endswith(_LOCAL_ENDS):
        return f"its host is a name of a local network ({_OPENED_WITH})"
    return None


class OutboundGuard:
    """Decides, for all customers' addresses of a process. A service.

    `allowed`: networks opened by the operator. `turn`: shares the look-ups among organizations. Names that did not
    answer in time have a share of their own in each: an organization's others are not kept waiting by them.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        allowed: Sequence[Network] = (),
        lookup: Lookup | None = None,
        turn: Turn | None = None,
    ) -> None:
        self._clock = clock
        self._monotonic = clock.monotonic
        self._allowed = tuple(allowed)
        self._lookup = lookup or self._ask_system
        self._turn: Turn = turn or (lambda _: nullcontext())
        self._silent: set[str] = set()
        self._threads: ThreadPoolExecutor | None = None
        self._known: dict[tuple[str, bool, str, int], tuple[float, tuple[str, ...]]] = {}
        # By owner too: each waits in its own line, never in that of whoever asked first.
        self._asking: dict[tuple[str, int, str], asyncio.Task[Sequence[str]]] = {}

    async def start(self) -> None:
        """Nothing runs before the first look-up."""

    async def stop(self) -> None:
        """Forget the look-ups under way."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    async def check(self, url: str, *, live: bool, owner: str = "") -> ParsedUrl:
        """The URL taken apart, after its name was resolved and found public; raises UrlRefused.

        A name that is refused is so after `REFUSED_AFTER`, whether it exists inside or not at all.
        `owner`: the organization whose URL it is.
        """
        target = target_of(url)
        answer_at = self._monotonic() + REFUSED_AFTER
        try:
            await self.addresses(target, live=live, owner=owner)
        except NameRefused:
            await self._clock.sleep(max(0.0, answer_at - self._monotonic()))
            raise
        return target

    def known(self, target: ParsedUrl, *, live: bool) -> tuple[str, ...] | None:
        """As `addresses`, where they were checked a moment ago; None: they have to be checked."""
        known = self._known.get((target.scheme, live, target.host, target.port))
        return known[1] if known is not None and known[0] > self._monotonic() else None

    async def addresses(self, target: ParsedUrl, *, live: bool, owner: str = "") -> tuple[str, ...]:
        """The addresses that a call may go to now, all of them checked; raises UrlRefused."""
        known = self.known(target, live=live)
        if known is not None:
            return known
        fault = form_fault(target, live=live)
        if fault is not None and not self._allowed:
            raise UrlRefused(fault)
        found = (target.host,) if target.literal else tuple(await self._resolve(target, owner))
        opened = bool(found) and all(lies_in(address, self._allowed) for address in found)
        if not opened and (fault is not None or not found or not all(map(is_public, found))):
            named = NameRefused if found or fault else NameUnknown
            raise (UrlRefused if target.literal else named)(fault or NOT_PUBLIC)
        if len(self._known) >= _KEPT_NAMES:
            self._known.clear()
        key = (target.scheme, live, target.host, target.port)
        self._known[key] = (self._monotonic() + LOOKUP_KEPT, found)
        return found

    async def _resolve(self, target: ParsedUrl, owner: str) -> Sequence[str]:
        """Its addresses; none when it has none, or none can be learned."""
        key = (target.host, target.port, owner)
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = asyncio.ensure_future(self._ask(*key))
            asking.add_done_callback(lambda task: self._answered(key, task))
        try:
            async with asyncio.timeout(LOOKUP_LIMIT):
                return await asyncio.shield(asking)
        except Unavailable:
            raise LookupsBusy("too many names of this organization are being resolved") from None
        except (OSError, UnicodeError):  # a time-out is an OSError
            return ()

    async def _ask(self, host: str, port: int, owner: str) -> Sequence[str]:
        began = None
        try:
            async with self._turn(f"{owner} silent" if host in self._silent else owner):
                began = self._monotonic()
                return await self._lookup(host, port)
        finally:
            if began is not None:
                self._remember(host, silent=self._monotonic() - began >= _SILENT_AFTER * LOOKUP_LIMIT)

    def _remember(self, host: str, *, silent: bool) -> None:
        if not silent:
            self._silent.discard(host)
        elif len(self._silent) < _SILENT_NAMES:
            self._silent.add(host)

    def _answered(self, key: tuple[str, int, str], task: "asyncio.Task[Sequence[str]]") -> None:
        self._asking.pop(key, None)
        if not task.cancelled():
            task.exception()  # anyone who waited has seen it; nobody may have waited any more

    async def _ask_system(self, host: str, port: int) -> Sequence[str]:
        # A pool of its own: names are the customers', and anyone who runs a name server can let it hang.
        if self._threads is None:
            self._threads = ThreadPoolExecutor(LOOKUPS_AT_ONCE, thread_name_prefix="names")
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
