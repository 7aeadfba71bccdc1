"""Web Push: each browser names the address of its push service, so every call goes through the guard (C30.6).

Connections are kept by host, and a host in trouble holds up no other.
"""

import ssl
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final

import orjson

from recado.channels.core.provider import Accepted, Down, NoPlace, Outcome, Refused, Retry, SlowDown, Unknown
from recado.channels.http.answer import Answer, retry_after
from recado.channels.http.connection_pool import ConnectionPool, default_tls
from recado.channels.http.http_connection import ConnectionBroke, TooLate
from recado.channels.http.outbound_guard import (
    LookupsBusy,
    NameUnknown,
    OutboundGuard,
    ParsedUrl,
    UrlRefused,
    target_of,
)
from recado.channels.push.notification import UNREGISTERED, PushCredential, PushNotification
from recado.channels.push.web_encryption import LONGEST, encrypted, vapid_token
from recado.domain.core.clock import Clock
from recado.domain.push.device import LONGEST_TOKEN

CALL_LIMIT, CONNECT_LIMIT = 15.0, 5.0  # seconds
TOKEN_LIFE: Final = 12 * 3600  # seconds: push services refuse what lasts longer than a day
MOST_HOSTS: Final = 200
MOST_TOKENS: Final = 1_000
_ADDRESSES_TRIED = 2


class WebPush:
    """`subject`: how a push service reaches the operator, an https or mailto address."""

    name = "webpush"
    has_one_gateway = False

    def __init__(
        self, guard: OutboundGuard, *, clock: Clock, subject: str, random_bytes: Callable[[int], bytes],
        tls: ssl.SSLContext | None = None, live: bool = True,
    ) -> None:  # fmt: skip
        """`tls`: by what peers are verified, if not by the system's certificates."""
        self._guard = guard
        self._clock = clock
        self._subject = subject
        self._random_bytes = random_bytes
        self._tls = tls
        self._live = live
        self._pools: OrderedDict[tuple[str, str, int], ConnectionPool] = OrderedDict()
        self._tokens: OrderedDict[tuple[str, str], tuple[int, str]] = OrderedDict()

    async def start(self) -> None:
        """Connections are made when they are needed."""

    async def stop(self) -> None:
        while self._pools:
            self._pools.popitem()[1].close()

    def gateway_of(self, credential: PushCredential, token: str) -> str:
        try:
            target = target_of(token, longest=LONGEST_TOKEN)
        except UrlRefused:
            return ""
        return f"{target.host}:{target.port}"

    async def send(self, notification: PushNotification, credential: PushCredential, attempt: int) -> Outcome:
        text = _text_of(notification)
        if len(text) > LONGEST:
            return Refused("too_long", "the notification is longer than browsers take")
        try:
            target = target_of(notification.token, longest=LONGEST_TOKEN)
            body = encrypted(
                text, p256dh=notification.p256dh or "", auth=notification.auth or "", random_bytes=self._random_bytes
            )
        except (UrlRefused, ValueError):
            return Refused("invalid_token", "the address or the keys of the browser are none")
        urgency = "normal" if notification.silent else "high"
        head = (
            f"POST {target.path} HTTP/1.1\r\nHost: {target.authority}\r\nContent-Length: {len(body)}\r\n"
            f"Content-Type: application/octet-stream\r\nContent-Encoding: aes128gcm\r\nTTL: {notification.seconds}\r\n"
            f"Urgency: {urgency}\r\nAuthorization: {self._authorization(credential, target)}\r\n\r\n"
        )
        return await self._post(target, head.encode("ascii") + body, notification, credential)

    async def _post(
        self, target: ParsedUrl, request: bytes, notification: PushNotification, credential: PushCredential
    ) -> Outcome:
        owner = credential.organization_id
        try:
            known = self._guard.known(target, live=self._live)
            addresses = known or await self._guard.addresses(target, live=self._live, owner=owner)
        except LookupsBusy:
            return NoPlace()
        except NameUnknown:  # of a name server that is away, too
            return Down("connect_failed")
        except UrlRefused:
            return Refused("invalid_token", "the address of the browser may not be called")
        find = partial(self._found, addresses)
        try:
            answer = await self._pool(target).post(request, CALL_LIMIT, find, only=addresses, again=True)
        except TooLate as late:
            return Unknown() if late.answer is None else self._outcome(late.answer, notification)
        except ConnectionBroke:
            return Unknown()
        except OSError:  # time-outs and faults of TLS are some
            return Down("connect_failed")
        return self._outcome(answer, notification)

    async def _found(self, addresses: tuple[str, ...]) -> tuple[str, ...]:
        return addresses[:_ADDRESSES_TRIED]

    def _outcome(self, answer: Answer, notification: PushNotification) -> Outcome:
        after = retry_after(answer.retry_after, self._clock.now())
        match answer.status:
            case 200 | 201 | 202 | 204:
                return Accepted(notification.dispatch_id)
            case 404 | 410:
                return Refused(UNREGISTERED, "the push service knows the browser no more")
            case 413:
                return Refused("too_long", "the notification is too long for the push service")
            case 429:
                return SlowDown(after)
            case 503:
                return Retry(after)
            case 401 | 403:
                return Refused("unauthorized", "the browser was registered with another key")
            case status if status >= 500:
                return Unknown()
        return Refused("provider_error", f"the push service answered {answer.status}")

    def _authorization(self, credential: PushCredential, target: ParsedUrl) -> str:
        audience = f"{target.scheme}://{target.authority}"
        key = (credential.vapid_private, audience)
        now = int(self._clock.now().timestamp())
        until, token = self._tokens.get(key, (0, ""))
        if until - now < TOKEN_LIFE // 2:
            until = now + TOKEN_LIFE
            token = vapid_token(credential.vapid_private, audience=audience, subject=self._subject, expires=until)
            self._tokens[key] = (until, token)
            if len(self._tokens) > MOST_TOKENS:
                self._tokens.popitem(last=False)
        return f"vapid t={token}, k={credential.vapid_public}"

    def _pool(self, target: ParsedUrl) -> ConnectionPool:
        key = (target.scheme, target.host, target.port)
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = ConnectionPool(
                self._clock, host=target.host, port=target.port,
                tls=None if target.scheme == "http" else self._verifying, kept=1_024, connect_limit=CONNECT_LIMIT,
            )  # fmt: skip
            if len(self._pools) > MOST_HOSTS:
                self._pools.popitem(last=False)[1].close()
        else:
            self._pools.move_to_end(key)
        return pool

    def _verifying(self) -> ssl.SSLContext:
        return self._tls or default_tls()


def _text_of(notification: PushNotification) -> bytes:
    return orjson.dumps({**notification.shown(), **notification.told()})
