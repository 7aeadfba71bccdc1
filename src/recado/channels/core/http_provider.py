"""What a provider over HTTP needs, whatever its protocol: its address, its connections, and the headers of requests."""

from collections.abc import Mapping
from typing import ClassVar, NotRequired

from typing_extensions import TypedDict, Unpack
from yarl import URL

from recado.channels.core.provider import OutboundMessage
from recado.channels.http.lean_http import LeanHttp
from recado.channels.http.outbound_http import OTHER_CONNECTIONS, OutboundHttp, Shares
from recado.domain.core.clock import Clock


class HttpOptions(TypedDict):
    """`url`: the base of its paths; `shares`: of an account in the connections for all but sends (C31).

    `timeout`, `connect_timeout`: seconds, by default 15 and 5.
    """

    url: str
    clock: Clock
    shares: NotRequired[Shares | None]
    timeout: NotRequired[float]
    connect_timeout: NotRequired[float]


class HttpProvider:
    """The connections to a provider. Raises ValueError for an address that is none of an API."""

    noun: ClassVar[str]
    """What errors call it."""

    verification_delay = 1.0
    read_with: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **options: Unpack[HttpOptions]) -> None:
        base = URL(options["url"])
        if base.scheme not in ("http", "https") or not base.host or base.user or base.query_string or base.fragment:
            form = "http(s)://host[:port][/path], without user, query or fragment"
            raise ValueError(f"a {self.noun}'s address is {form}")
        self._base, self._clock, self._shares = base, options["clock"], options.get("shares")
        self._timeout, self._connect_timeout = options.get("timeout", 15.0), options.get("connect_timeout", 5.0)
        # Sends have connections of their own, one for each call in flight: no send waits for one (C31).
        self._sends = LeanHttp(base, clock=self._clock, timeout=self._timeout, connect_timeout=self._connect_timeout)
        self._http = self._pool(OTHER_CONNECTIONS)

    def _pool(self, connections: int) -> OutboundHttp:
        return OutboundHttp(
            connections=connections,
            timeout=self._timeout,
            connect_timeout=self._connect_timeout,
            turn=self._shares(connections) if self._shares else None,
        )

    async def start(self) -> None:
        await self._sends.start()
        await self._http.start()

    async def stop(self) -> None:
        await self._sends.stop()
        await self._http.stop()


def json_headers(token: str) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "Recado",
    }


def texts_of(message: OutboundMessage) -> list[str]:
    """What a provider could quote back to us in the text of a refusal."""
    variables = () if message.template is None else message.template.variables
    return [message.to, message.to.lstrip("+"), *variables, *_strings(message.payload)]


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        value = [inner for name, inner in value.items() if name not in ("type", "kind")]  # words of ours
    return [text for each in value for text in _strings(each)] if isinstance(value, list) else []
