"""Apple's push service: HTTP/2, a token of the app's key (ES256), kept for most of an hour, and a connection an app."""

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import orjson
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from yarl import URL

from recado.channels.core.provider import Accepted, Down, NoPlace, Outcome, Refused, Retry, SlowDown, Unknown
from recado.channels.http.answer import Answer, Lost, NotSent, retry_after
from recado.channels.push.http2 import Headers, Http2Connection, connect
from recado.channels.push.notification import UNREGISTERED, PushCredential, PushNotification
from recado.channels.push.web_tokens import es256_token
from recado.domain.core.clock import Clock

CALL_LIMIT, CONNECT_LIMIT = 15.0, 5.0  # seconds
TOKEN_FOR: Final = 2_700.0  # seconds: Apple takes none that is older than an hour
TOKEN_FOR_AT_LEAST: Final = 1_200.0  # seconds: nor a new one within 20 minutes, whatever it says of the one before
IDLE_LIMIT: Final = 240.0
"""Seconds without a request: what stands between may have forgotten the connection then, and a request written to it
would be in doubt."""
MOST_KEPT: Final = 200  # tokens, and connections
LONGEST: Final = 4_096  # bytes
MOST_TRIES: Final = 4  # of a notification that connections say they have not looked at
_GONE: Final = ("BadDeviceToken", "Unregistered", "ExpiredToken")
_OURS: Final = ("ExpiredProviderToken", "InvalidProviderToken", "MissingProviderToken", "Forbidden")


class _Token(NamedTuple):
    """`of`: what it was made of; `made_at`: monotonic seconds."""

    of: tuple[str, str, str]
    made_at: float
    text: str


class Apns:
    """`url`, `development_url`: of the two services. `tls`: by what they are verified, if not by the system's."""

    name = "apns"
    has_one_gateway = True

    def __init__(self, url: URL, development_url: URL, *, clock: Clock, tls: ssl.SSLContext | None = None) -> None:
        self._urls = {False: url, True: development_url}
        self._clock = clock
        self._tls = tls or ssl.create_default_context()
        self._tls.set_alpn_protocols(["h2"])
        self._tokens: OrderedDict[str, _Token] = OrderedDict()
        self._connections: OrderedDict[tuple[str, bool], Http2Connection] = OrderedDict()
        self._connecting: dict[tuple[str, bool], asyncio.Task[Http2Connection]] = {}

    async def start(self) -> None:
        """Connections are made when they are needed."""

    async def stop(self) -> None:
        making = list(self._connecting.values())
        for each in making:
            each.cancel()
        await asyncio.gather(*making, return_exceptions=True)
        while self._connections:
            self._connections.popitem()[1].close()

    def gateway_of(self, credential: PushCredential, token: str) -> str:
        return self.name

    async def send(self, notification: PushNotification, credential: PushCredential, attempt: int) -> Outcome:
        key = credential.apns
        if key is None:
            return Refused("no_credentials", "the app has no key for Apple's service")
        if not notification.token.isalnum() or not notification.token.isascii():
            return Refused(UNREGISTERED, "the token is none of Apple's")
        body = _body_of(notification)
        if len(body) > LONGEST:
            return Refused("too_long", "the notification is longer than Apple takes")
        answer = await self._request(credential, key, self._headers(notification, credential, key), body)
        return self._outcome(answer, notification, credential)

    async def _request(
        self, credential: PushCredential, key: Mapping[str, Any], headers: Headers, body: bytes
    ) -> Answer | NotSent | Lost | NoPlace:
        """Once more only where it certainly was not looked at."""
        place = (credential.app_id, bool(key.get("development")))
        limit = asyncio.get_running_loop().time() + CALL_LIMIT
        for _ in range(MOST_TRIES):
            try:
                async with asyncio.timeout_at(limit):
                    connection = await self._with_room(place)
            except TimeoutError:
                return NoPlace()
            if connection is None:
                return NotSent()
            if connection.usable:
                answer = await connection.request(headers, body, limit)
                connection.idle_since = self._clock.monotonic()
                if not isinstance(answer, NotSent):
                    return answer
        return NoPlace()

    async def _with_room(self, place: tuple[str, bool]) -> Http2Connection | None:
        """The connection when it has room, or is used no more; None where there is none."""
        try:
            connection = await self._connection(place)
        except OSError:  # a time-out is one
            return None
        while connection.usable and not connection.room:
            await connection.wait_for_room()
        return connection

    async def _connection(self, place: tuple[str, bool]) -> Http2Connection:
        """The one of the app: made once for all that need it now."""
        kept = self._connections.get(place)
        if kept is not None and not kept.busy and self._clock.monotonic() - kept.idle_since > IDLE_LIMIT:
            kept.retire()
        if kept is not None and kept.usable:
            self._connections.move_to_end(place)
            return kept
        making = self._connecting.get(place)
        if making is None:
            url = self._urls[place[1]]
            making = asyncio.create_task(
                connect(url.host or "", url.port or 443, self._tls, CONNECT_LIMIT), name="apns connection"
            )
            self._connecting[place] = making
            making.add_done_callback(lambda _: self._connecting.pop(place, None))
        try:
            made = await asyncio.shield(making)
        except asyncio.CancelledError:
            if making.cancelled():
                raise ConnectionError("stopped") from None
            raise
        if self._connections.get(place) is not made:
            made.idle_since = self._clock.monotonic()
            self._connections[place] = made
            self._connections.move_to_end(place)
            if len(self._connections) > MOST_KEPT:
                self._connections.popitem(last=False)[1].retire()
        return made

    def _headers(self, notification: PushNotification, credential: PushCredential, key: Mapping[str, Any]) -> Headers:
        expires = int(self._clock.now().timestamp()) + notification.seconds
        return [
            (":method", "POST"),
            (":scheme", "https"),
            (":authority", self._urls[bool(key.get("development"))].host or ""),
            (":path", f"/3/device/{notification.token}"),
            ("authorization", f"bearer {self._token(credential, key)}"),
            ("apns-topic", str(key["bundle_id"])),
            ("apns-push-type", "background" if notification.silent else "alert"),
            ("apns-priority", "5" if notification.silent else "10"),
            ("apns-expiration", str(expires)),
        ]

    def _token(self, credential: PushCredential, key: Mapping[str, Any]) -> str:
        now = self._clock.monotonic()
        of = (str(key["key_id"]), str(key["team_id"]), str(key["private_key"]))
        kept = self._tokens.get(credential.app_id)
        if kept is not None and kept.of == of and kept.made_at + TOKEN_FOR > now:
            return kept.text
        claims = {"iss": key["team_id"], "iat": int(self._clock.now().timestamp())}
        private = load_pem_private_key(of[2].encode(), password=None)
        assert isinstance(private, ec.EllipticCurvePrivateKey)  # noqa: S101 - looked at when it was given
        token = es256_token({"kid": key["key_id"]}, claims, private)
        self._tokens[credential.app_id] = _Token(of, now, token)
        if len(self._tokens) > MOST_KEPT:
            self._tokens.popitem(last=False)
        return token

    def _forget_token(self, app_id: str) -> None:
        """Apple does not take it: another one is made, unless this one is so new that Apple would not take that."""
        kept = self._tokens.get(app_id)
        if kept is not None and kept.made_at + TOKEN_FOR_AT_LEAST <= self._clock.monotonic():
            del self._tokens[app_id]

    def _outcome(
        self, answer: Answer | NotSent | Lost | NoPlace, notification: PushNotification, credential: PushCredential
    ) -> Outcome:
        if isinstance(answer, NoPlace):
            return answer
        if isinstance(answer, NotSent):
            return Down("connect_failed")
        if isinstance(answer, Lost):
            return Unknown()
        after = retry_after(answer.retry_after, self._clock.now())
        reason = _reason_of(answer.body)
        if answer.status == 200:
            return Accepted(notification.dispatch_id)
        if answer.status == 410 or reason in _GONE:
            return Refused(UNREGISTERED, "Apple knows the token no more")
        if reason == "DeviceTokenNotForTopic":  # which may be the fault of the bundle id: no device is lost by that
            return Refused("invalid_token", "the token is one of another app")
        if answer.status in (401, 403) or reason in _OURS:
            self._forget_token(credential.app_id)
            return Down("unauthorized")
        if answer.status == 413:
            return Refused("too_long", "the notification is longer than Apple takes")
        if answer.status == 429:
            return SlowDown(after) if reason != "TooManyRequests" else Retry(after)
        if answer.status == 503:
            return NoPlace() if reason == "Shutdown" else Retry(after)
        if answer.status >= 500:
            return Unknown()
        return Refused("provider_error", f"Apple answered {answer.status}")


def _body_of(notification: PushNotification) -> bytes:
    aps: dict[str, Any] = {"content-available": 1}
    if not notification.silent:
        aps = {"alert": {"title": notification.title, "body": notification.body}, "sound": "default"}
        if notification.image_url is not None or notification.actions:
            aps["mutable-content"] = 1
    more = notification.shown()
    told = {name: more[name] for name in ("imageUrl", "actions") if name in more}
    return orjson.dumps({"aps": aps, **told, **notification.told()})


def _reason_of(body: bytes) -> str | None:
    with suppress(ValueError, TypeError, KeyError):
        found = orjson.loads(body)["reason"]
        return found if isinstance(found, str) else None
    return None
