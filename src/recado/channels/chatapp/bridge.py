"""The bridge: a provider reached through a small HTTP protocol of our own (C29.3).

Every answer, and every way in which none comes, becomes an outcome value; nothing personal enters a text or a log.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson
from yarl import URL

from recado.channels.chatapp import bridge_answers, bridge_callbacks
from recado.channels.core.errors import ProviderError
from recado.channels.core.events import Event
from recado.channels.core.provider import (
    Account,
    NumberHealth,
    OutboundMessage,
    Outcome,
    ProviderTemplate,
    Refused,
    Submission,
    TemplateSubmission,
)
from recado.channels.core.signing import PROVIDER_SIGNATURE, header, is_signed, signing_key
from recado.channels.http.answer import Answer, NotSent
from recado.channels.http.lean_http import LeanHttp
from recado.channels.http.outbound_http import MAX_ANSWER, OTHER_CONNECTIONS, OutboundHttp, Shares
from recado.domain.core.clock import Clock

_LONGEST_LIST = 4 * 1024 * 1024  # bytes of an answer that lists templates


class Bridge:
    """`url`: the base of the operations' paths; `token`: what we show the bridge; `secret`: what it signs with.

    `shares`: of an account in the connections for all but sends (C31); `timeout`, `connect_timeout`: seconds.
    """

    name = "bridge"
    always_references = False
    paces_pairs = False
    verification_delay = 1.0
    challenged = False
    read_with = ()

    def __init__(
        self,
        *,
        url: str,
        token: str,
        secret: str,
        callback_url: str,
        clock: Clock,
        idempotent: bool = False,
        shares: Shares | None = None,
        timeout: float = 15.0,
        connect_timeout: float = 5.0,
    ) -> None:
        base = URL(url)
        if base.scheme not in ("http", "https") or not base.host or base.user or base.query_string or base.fragment:
            raise ValueError("a bridge's address is http(s)://host[:port][/path], without user, query or fragment")
        self.idempotent = idempotent
        self._base = base
        self._token = token
        self._keys = (signing_key(secret),)
        self._callback_url = callback_url
        self._clock = clock
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "Recado",
        }
        # Sends have connections of their own, one for each call in flight: no send waits for one (C31).
        self._sends = LeanHttp(base, clock=clock, timeout=timeout, connect_timeout=connect_timeout)
        self._send_head = self._sends.head((base / "send").raw_path, self._headers)
        self._http = OutboundHttp(
            connections=OTHER_CONNECTIONS,
            timeout=timeout,
            connect_timeout=connect_timeout,
            turn=shares(OTHER_CONNECTIONS) if shares else None,
        )

    async def start(self) -> None:
        await self._sends.start()
        await self._http.start()

    async def stop(self) -> None:
        await self._sends.stop()
        await self._http.stop()

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        try:
            body = orjson.dumps(
                {
                    "id": message.id,
                    "channel": message.channel,
                    "env": message.env,
                    "organizationId": account.organization_id,
                    "account": account.phone_number_id,
                    "to": message.to,
                    "content": _content(message),
                    "callbackUrl": self._callback_url,
                }
            )
        except TypeError:
            return Refused("provider_error", "the message has no JSON form")
        answer = await self._sends.post(b"%sIdempotency-Key: %b\r\n" % (self._send_head, message.id.encode()), body)
        return bridge_answers.outcome(answer, self._clock.now(), personal=(message.to, self._token, *_texts(message)))

    def verify_callback(self, headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        return is_signed(header(headers, PROVIDER_SIGNATURE), self._keys, body, now)

    def parse_callback(self, headers: Mapping[str, str], body: bytes) -> list[Event]:
        return bridge_callbacks.events(body)

    def answer_challenge(self, query: Mapping[str, str]) -> str | None:
        return None

    async def number_health(self, account: Account) -> NumberHealth:
        return bridge_answers.number_health(await self._call("number_health", account))

    async def update_profile(self, account: Account, profile: Mapping[str, str]) -> None:
        await self._call("update_profile", account, profile=dict(profile))

    async def connect(self, account: Account) -> None:
        await self._call("connect", account)

    async def disconnect(self, account: Account) -> None:
        await self._call("disconnect", account)

    async def submit_template(self, account: Account, template: TemplateSubmission) -> Submission:
        answer = await self._call(
            "submit_template",
            account,
            id=template.id,
            name=template.name,
            language=template.language,
            category=template.category,
            components=list(template.components),
            headerExampleUrl=template.header_example_url,
            providerTemplateId=template.provider_template_id,
            callbackUrl=self._callback_url,
        )
        return bridge_answers.submission(answer)

    async def delete_template(self, account: Account, name: str, provider_template_id: str | None) -> None:
        await self._call("delete_template", account, name=name, providerTemplateId=provider_template_id)

    async def list_templates(self, account: Account) -> list[ProviderTemplate]:
        return bridge_answers.templates(await self._call("list_templates", account, _longest=_LONGEST_LIST))

    async def _call(
        self, operation: str, account: Account, *, _longest: int = MAX_ANSWER, **fields: Any
    ) -> Mapping[str, Any]:
        """One operation other than a send; raises `ProviderError`."""
        body = {
            "env": account.env,
            "organizationId": account.organization_id,
            "account": account.phone_number_id,
            "businessAccount": account.business_account_id,
            **{name: value for name, value in fields.items() if value is not None},
        }
        answer = await self._http.post(
            self._base / operation, orjson.dumps(body), self._headers, owner=account.owner, longest=_longest
        )
        if isinstance(answer, Answer):
            return bridge_answers.operation_result(answer, personal=(self._token,))
        code = "connect_failed" if isinstance(answer, NotSent) else "no_answer"
        raise ProviderError("unreachable", code, f"the bridge did not answer {operation}")


def _content(message: OutboundMessage) -> dict[str, Any]:
    content: dict[str, Any] = {"type": message.type}
    if message.payload is not None:
        content["payload"] = message.payload
    if message.template_name is not None:
        content["template"] = {
            "name": message.template_name,
            "language": message.template_language,
            "components": message.template_components,
            "variables": message.template_vars or (),
        }
    return content


def _texts(message: OutboundMessage) -> tuple[str, ...]:
    """What a provider could quote back to us in the text of a refusal."""
    texts = list(message.template_vars or ())
    payload = message.payload or {}
    text = payload.get("text")
    if isinstance(text, dict) and isinstance(text.get("body"), str):
        texts.append(text["body"])
    return tuple(texts)
