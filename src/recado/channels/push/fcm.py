"""Firebase Cloud Messaging, HTTP v1: a token of the service account, kept while it is good, and one call a device.

The addresses are the operator's: what a service account's file says of them is never called.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from yarl import URL

from recado.channels.core.provider import Accepted, Down, Outcome, Refused, Retry, SlowDown, Unknown
from recado.channels.http.answer import Answer, Lost, NotSent, retry_after
from recado.channels.http.lean_http import LeanHttp
from recado.channels.push.notification import UNREGISTERED, PushCredential, PushNotification
from recado.channels.push.web_tokens import rs256_token
from recado.domain.core.clock import Clock

SCOPE: Final = "https://www.googleapis.com/auth/firebase.messaging"
GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_LIFE: Final = 3_600  # seconds
RENEWED_BEFORE: Final = 300.0  # seconds before its end
MOST_TOKENS: Final = 1_000
_UNAUTHORIZED: Final = Down("unauthorized")
_OF_THE_TOKEN: Final[Mapping[str, Outcome]] = {
    "UNREGISTERED": Refused(UNREGISTERED, "the token is not registered any more"),
    "SENDER_ID_MISMATCH": Refused("invalid_token", "the token is one of another project"),
    "THIRD_PARTY_AUTH_ERROR": Refused("unauthorized", "the project has no good key of Apple's, or of browsers"),
}
"""Error codes of Firebase that speak of one token, whatever the status: the project's others go on."""


class Fcm:
    """`url`, `token_url`: of the messages, and of the tokens."""

    name = "fcm"
    has_one_gateway = True

    def __init__(self, url: URL, token_url: URL, *, clock: Clock) -> None:
        self._clock = clock
        self._url = url
        self._token_url = token_url
        self._http = LeanHttp(url.origin(), clock=clock)
        self._tokens_http = LeanHttp(token_url.origin(), clock=clock)
        self._tokens: OrderedDict[tuple[str, str], tuple[float, str]] = OrderedDict()
        self._asking: dict[tuple[str, str], asyncio.Task[str | Outcome]] = {}

    async def start(self) -> None:
        await self._http.start()
        await self._tokens_http.start()

    async def stop(self) -> None:
        await self._http.stop()
        await self._tokens_http.stop()

    def gateway_of(self, credential: PushCredential, token: str) -> str:
        return self.name

    async def send(self, notification: PushNotification, credential: PushCredential, attempt: int) -> Outcome:
        account = credential.service_account
        if account is None:
            return Refused("no_credentials", "the app has no service account")
        token = await self._token(credential, account)
        if not isinstance(token, str):
            return token
        head = self._http.head(
            f"/v1/projects/{account['project_id']}/messages:send",
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        answer = await self._http.post(head, orjson.dumps({"message": self._message_of(notification)}))
        outcome = self._outcome(answer, notification)
        key = _key(credential, account)
        if outcome == _UNAUTHORIZED and self._tokens.get(key, (0.0, ""))[1] == token:
            del self._tokens[key]
        return outcome

    def _outcome(self, answer: Answer | NotSent | Lost, notification: PushNotification) -> Outcome:
        if isinstance(answer, NotSent):
            return Down("connect_failed")
        if isinstance(answer, Lost):
            return Unknown()
        if answer.status == 200:
            return Accepted(notification.dispatch_id)
        told = _OF_THE_TOKEN.get(_code_of(answer.body))
        if told is not None:
            return told
        after = retry_after(answer.retry_after, self._clock.now())
        match answer.status:
            case 401:
                return _UNAUTHORIZED
            case 403:
                return Down("forbidden")
            case 404:  # of the project, or of the address: it says nothing of the token
                return Down("not_found")
            case 429:
                return SlowDown(after)
            case 503:
                return Retry(after)
            case status if status >= 500:
                return Unknown()
        return Refused("provider_error", f"the service answered {answer.status}")

    async def _token(self, credential: PushCredential, account: Any) -> str | Outcome:
        """One for all calls that need it now; asked for once."""
        key = _key(credential, account)
        until, token = self._tokens.get(key, (0.0, ""))
        if until > self._clock.monotonic():
            return token
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = asyncio.create_task(self._ask(key, account), name="fcm token")
            asking.add_done_callback(lambda _: self._asking.pop(key, None))
        return await asyncio.shield(asking)

    async def _ask(self, key: tuple[str, str], account: Any) -> str | Outcome:
        form = urlencode({"grant_type": GRANT, "assertion": self._assertion(account)}).encode()
        head = self._tokens_http.head(self._token_url.path, {"Content-Type": "application/x-www-form-urlencoded"})
        answer = await self._tokens_http.post(head, form)
        if not isinstance(answer, Answer) or answer.status >= 500:
            return Down("connect_failed")
        if answer.status == 429:
            return SlowDown(retry_after(answer.retry_after, self._clock.now()))
        if answer.status != 200:
            return _UNAUTHORIZED
        try:
            given = orjson.loads(answer.body)
            token, seconds = given["access_token"], float(given.get("expires_in", TOKEN_LIFE))
        except (ValueError, TypeError, KeyError, AttributeError):
            return _UNAUTHORIZED
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            return _UNAUTHORIZED
        life = min(seconds, TOKEN_LIFE) if seconds > 0 else 0.0
        self._tokens[key] = (self._clock.monotonic() + life - min(RENEWED_BEFORE, life / 2), token)
        if len(self._tokens) > MOST_TOKENS:
            self._tokens.popitem(last=False)
        return token

    def _message_of(self, notification: PushNotification) -> dict[str, Any]:
        """All values of `data` are texts there. `apns` is for devices of ios whose app has no key of Apple's."""
        told = notification.told()
        data = {name: value if isinstance(value, str) else orjson.dumps(value).decode() for name, value in told.items()}
        if notification.actions:
            data["actions"] = orjson.dumps([dict(action) for action in notification.actions]).decode()
        silent = notification.silent
        expires = int(self._clock.now().timestamp()) + notification.seconds
        apns: dict[str, Any] = {"headers": {"apns-expiration": str(expires)}}
        message: dict[str, Any] = {"token": notification.token, "data": data, "apns": apns}
        message["android"] = {"ttl": f"{notification.seconds}s", "priority": "NORMAL" if silent else "HIGH"}
        if silent:
            apns["headers"]["apns-priority"] = "5"
            apns["payload"] = {"aps": {"content-available": 1}}
            return message
        shown = {"title": notification.title, "body": notification.body, "image": notification.image_url}
        message["notification"] = {name: value for name, value in shown.items() if value is not None}
        aps: dict[str, Any] = {"sound": "default"}
        if notification.image_url is not None or notification.actions:
            aps["mutable-content"] = 1
        apns["payload"] = {"aps": aps}
        return message

    def _assertion(self, account: Any) -> str:
        now = int(self._clock.now().timestamp())
        head = {"typ": "JWT"}
        if account.get("private_key_id"):
            head["kid"] = account["private_key_id"]
        claims = {
            "iss": account["client_email"], "scope": SCOPE, "aud": str(self._token_url), "iat": now,
            "exp": now + TOKEN_LIFE,
        }  # fmt: skip
        key = load_pem_private_key(account["private_key"].encode(), password=None)
        assert isinstance(key, rsa.RSAPrivateKey)  # noqa: S101 - looked at when it was given
        return rs256_token(head, claims, key)


def _key(credential: PushCredential, account: Any) -> tuple[str, str]:
    return credential.app_id, str(account["client_email"]) + str(hash(account["private_key"]))


def _code_of(body: bytes) -> str:
    """Firebase's own code of an error; empty where it says none."""
    try:
        details = orjson.loads(body)["error"]["details"]
        code = next((each["errorCode"] for each in details if "errorCode" in each), "")
    except (ValueError, TypeError, KeyError, AttributeError):
        return ""
    return code if isinstance(code, str) else ""
