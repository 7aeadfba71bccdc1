"""The hosted graph-style API: a provider in the cloud, one address for all numbers, each with its token (C29.2).

Every answer, and every way in which none comes, becomes an outcome value; nothing personal enters a text or a log.
"""

import hashlib
import hmac
import re
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import lru_cache
from typing import Any

import orjson
from yarl import URL

from recado.channels.chatapp import (
    cloud_answers,
    cloud_callbacks,
    cloud_media,
    cloud_messages,
    cloud_templates,
)
from recado.channels.chatapp.cloud_media import OpenMedia
from recado.channels.chatapp.cloud_messages import PRODUCT
from recado.channels.core.errors import MalformedCallback, ProviderError
from recado.channels.core.events import Event
from recado.channels.core.fields import Fields
from recado.channels.core.provider import (
    Account,
    Down,
    NumberHealth,
    OutboundMessage,
    Outcome,
    ProviderTemplate,
    Refused,
    Submission,
    TemplateSubmission,
)
from recado.channels.core.signing import header, signing_key
from recado.channels.http.answer import Answer, NotSent
from recado.channels.http.lean_http import LeanHttp
from recado.channels.http.outbound_http import MAX_ANSWER, MEDIA_CONNECTIONS, OTHER_CONNECTIONS, OutboundHttp, Shares
from recado.domain.core.clock import Clock

_is_id = re.compile(r"[0-9A-Za-z_\-]{1,1024}").fullmatch
_PRODUCT = {"messaging_product": PRODUCT}
_PROFILE_EDGE = f"{PRODUCT}_business_profile"
_PAGE = 100  # templates
_MOST_PAGES = 60  # an account holds at most 6,000 templates
_LONGEST_PAGE = 8 * 1024 * 1024  # bytes
_MAX_ID = 256
_MAX_ADDRESS = 4_096
_HEADS_REMEMBERED = 1_000  # of numbers: what begins each of their sends


class Cloud:
    """`url`: the base of the API with its version; `app_secret`: what signs its callbacks.

    `verify_token`: what it must know before it may subscribe; None: nobody may.

    `shares`: of an account in the connections for all but sends (C31); `timeout`, `connect_timeout`: seconds.
    """

    name = "cloud"
    idempotent = False
    always_references = False
    paces_pairs = True
    verification_delay = 1.0
    challenged = True
    read_with = ()

    def __init__(
        self,
        *,
        url: str,
        app_secret: str,
        verify_token: str | None = None,
        clock: Clock,
        shares: Shares | None = None,
        timeout: float = 15.0,
        connect_timeout: float = 5.0,
    ) -> None:
        base = URL(url)
        if base.scheme not in ("http", "https") or not base.host or base.user or base.query_string or base.fragment:
            raise ValueError("the provider's address is http(s)://host[:port][/path], without user, query or fragment")
        self._base = base
        self._secret = signing_key(app_secret)
        self._verify_token = verify_token
        self._clock = clock
        # Sends have connections of their own, one for each call in flight: no send waits for one (C31).
        self._sends = LeanHttp(base, clock=clock, timeout=timeout, connect_timeout=connect_timeout)
        self._send_head = lru_cache(_HEADS_REMEMBERED)(self._make_send_head)
        self._http = OutboundHttp(
            connections=OTHER_CONNECTIONS,
            timeout=timeout,
            connect_timeout=connect_timeout,
            turn=shares(OTHER_CONNECTIONS) if shares else None,
        )
        self._media = OutboundHttp(
            connections=MEDIA_CONNECTIONS,
            timeout=timeout,
            connect_timeout=connect_timeout,
            turn=shares(MEDIA_CONNECTIONS) if shares else None,
        )

    async def start(self) -> None:
        await self._sends.start()
        await self._http.start()
        await self._media.start()

    async def stop(self) -> None:
        await self._sends.stop()
        await self._http.stop()
        await self._media.stop()

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        if account.access_token is None:
            return Down("unauthorized")
        if not _is_id(account.phone_number_id):
            return Down("not_found")
        try:
            body = orjson.dumps(cloud_messages.body(message))
        except cloud_messages.Unsendable as error:
            return Refused("provider_error", str(error))
        except TypeError:
            return Refused("provider_error", "the message has no JSON form")
        try:
            head = self._send_head(account.phone_number_id, account.access_token)
        except ValueError:  # no token looks like that
            return Down("unauthorized")
        answer = await self._sends.post(head, body)
        personal = (message.to, message.to.lstrip("+"), account.access_token, *_texts(message))
        return cloud_answers.outcome(answer, self._clock.now(), personal=personal)

    def _make_send_head(self, phone_number_id: str, token: str) -> bytes:
        return self._sends.head((self._base / phone_number_id / "messages").raw_path, _headers(token))

    def verify_callback(self, headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        return cloud_callbacks.is_signed(header(headers, cloud_callbacks.SIGNATURE), self._secret, body)

    def parse_callback(self, headers: Mapping[str, str], body: bytes) -> list[Event]:
        return cloud_callbacks.events(body)

    def answer_challenge(self, query: Mapping[str, str]) -> str | None:
        return cloud_callbacks.challenge(query, self._verify_token)

    # Numbers ----------------------------------------------------------------------------------------------------------

    async def number_health(self, account: Account) -> NumberHealth:
        number = await self._call(
            "GET", _object(self._base, account.phone_number_id) % {"fields": cloud_answers.HEALTH_FIELDS}, account
        )
        profile = await self._call("GET", self._profile(account) % {"fields": cloud_answers.PROFILE_FIELDS}, account)
        return cloud_answers.number_health(number, profile)

    async def update_profile(self, account: Account, profile: Mapping[str, str]) -> None:
        """Everything but the picture, which the API takes from an upload of the application's owner only.

        A field that is left out is emptied: `profile` is the whole of it.
        """
        fields = {name: profile.get(name, "") for name in ("address", "email")}
        fields |= {name: profile[name] for name in ("about", "vertical") if profile.get(name)}  # these cannot be empty
        websites = [profile["website"]] if profile.get("website") else []
        await self._call("POST", self._profile(account), account, {**_PRODUCT, **fields, "websites": websites})

    async def connect(self, account: Account) -> None:
        """Let the account's callbacks come to us, and register the number."""
        await self._call("POST", _object(self._base, account.business_account_id) / "subscribed_apps", account, {})
        await self._call(
            "POST",
            _object(self._base, account.phone_number_id) / "register",
            account,
            {**_PRODUCT, "pin": self._pin(account)},
        )

    async def disconnect(self, account: Account) -> None:
        await self._call("POST", _object(self._base, account.phone_number_id) / "deregister", account, _PRODUCT)

    # Templates --------------------------------------------------------------------------------------------------------

    async def submit_template(self, account: Account, template: TemplateSubmission) -> Submission:
        """Make the template there; one that is there already is edited, for its name and language are taken."""
        known = template.provider_template_id
        held = None if known is None else await self._held_template(account, known)
        if known is not None and held is not None:
            edit = cloud_templates.edit(template, held.get("category"))
            await self._call("POST", _object(self._base, known), account, edit)
            return Submission(known)
        body = cloud_templates.submission(template)
        answer = await self._call("POST", self._templates(account), account, body)
        template_id = cloud_answers.text_of(answer, "id", _MAX_ID)
        return Submission(template_id, cloud_templates.verdict(answer, template_id, self._clock.now()))

    async def _held_template(self, account: Account, template_id: str) -> Mapping[str, Any] | None:
        """What the provider holds under that id; None when it was deleted there."""
        try:
            return await self._call("GET", _object(self._base, template_id) % {"fields": "category"}, account)
        except ProviderError as error:
            if error.code != "not_found":
                raise
            return None

    async def delete_template(self, account: Account, name: str, provider_template_id: str | None) -> None:
        wanted = {"name": name}
        if provider_template_id is not None:  # else all languages of that name
            wanted["hsm_id"] = provider_template_id
        await self._call("DELETE", self._templates(account) % wanted, account)

    async def list_templates(self, account: Account) -> list[ProviderTemplate]:
        found: list[ProviderTemplate] = []
        wanted = {"fields": cloud_templates.LISTED_FIELDS, "limit": str(_PAGE)}
        for page in range(_MOST_PAGES):
            answer = await self._call("GET", self._templates(account) % wanted, account, longest=_LONGEST_PAGE)
            try:
                found += cloud_templates.listed(Fields(answer, "list").items("data", 1_000), f"page[{page}].data")
                after = cloud_templates.page_end(answer)
            except MalformedCallback as error:
                raise cloud_answers.malformed(error.where) from None
            if after is None:
                break
            wanted["after"] = after
        return found

    # Media ------------------------------------------------------------------------------------------------------------

    async def upload_media(
        self, account: Account, content: AsyncIterable[bytes], *, size: int, mime_type: str, filename: str
    ) -> str:
        """Hand over `size` bytes; the id under which messages of this number send them. Raises `ProviderError`."""
        form = cloud_media.upload_form(content, size, mime_type, filename)
        token = _token(account)
        headers = {**_headers(token), "Content-Type": form.content_type, "Content-Length": str(form.length)}
        url = _object(self._base, account.phone_number_id) / "media"
        answer = await self._media.request(
            "POST", url, headers, owner=account.owner, body=form.parts, timeout=cloud_media.UPLOAD_TIMEOUT
        )
        if not isinstance(answer, Answer):
            raise _unreachable(answer, "upload_media")
        return cloud_answers.text_of(cloud_answers.operation_result(answer, personal=(token,)), "id", _MAX_ID)

    @asynccontextmanager
    async def open_media(self, account: Account, media_ref: str) -> AsyncIterator[OpenMedia]:
        """Read media that a person sent (`Inbound.media_ref`), or that was uploaded. Raises `ProviderError`."""
        about = await self._call("GET", _object(self._base, media_ref), account)
        url = cloud_media.download_address(cloud_answers.text_of(about, "url", _MAX_ADDRESS), self._base)
        try:
            fields = Fields(about, "media")
            mime_type, sha256 = fields.text("mime_type", 256), fields.optional_text("sha256", 128)
            size = fields.optional_count("file_size", cloud_media.LARGEST)
        except MalformedCallback as error:
            raise cloud_answers.malformed(error.where) from None
        try:
            async with self._media.download(
                url, _headers(_token(account)), owner=account.owner, timeout=cloud_media.UPLOAD_TIMEOUT
            ) as (
                status,
                _,
                chunks,
            ):
                if status != 200:
                    raise ProviderError("unreachable", "no_answer", f"the provider answered with status {status}")
                yield OpenMedia(mime_type, size, sha256, cloud_media.chunks_of(chunks, size))
        except OSError:
            raise ProviderError("unreachable", "no_answer", "the provider did not answer open_media") from None

    # Parts ------------------------------------------------------------------------------------------------------------

    def _profile(self, account: Account) -> URL:
        return _object(self._base, account.phone_number_id) / _PROFILE_EDGE

    def _templates(self, account: Account) -> URL:
        return _object(self._base, account.business_account_id) / "message_templates"

    def _pin(self, account: Account) -> str:
        """The second factor of a number's registration, the same each time: six digits from our secret and its id."""
        digest = hmac.new(self._secret, account.phone_number_id.encode(), hashlib.sha256).digest()
        return f"{int.from_bytes(digest[:8], 'big') % 1_000_000:06}"

    async def _call(
        self,
        method: str,
        url: URL,
        account: Account,
        body: Mapping[str, Any] | None = None,
        *,
        longest: int = MAX_ANSWER,
    ) -> Mapping[str, Any]:
        """One operation other than a send; raises `ProviderError`."""
        token = _token(account)
        sent = None if body is None else orjson.dumps(body)
        answer = await self._http.request(method, url, _headers(token), owner=account.owner, body=sent, longest=longest)
        if not isinstance(answer, Answer):
            raise _unreachable(answer, f"{method} {url.name}" if url.name.isalpha() else method)
        return cloud_answers.operation_result(answer, personal=(token,))


def _object(base: URL, object_id: str) -> URL:
    """The address of one object; raises `ProviderError` for an id that would be a path of its own."""
    if not _is_id(object_id):
        raise ProviderError("refused", "provider_error", "the id is none that this provider gives")
    return base / object_id


def _token(account: Account) -> str:
    if account.access_token is None:
        raise ProviderError("unreachable", "unauthorized", "the number has no access token")
    return account.access_token


def _headers(token: str) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "Recado",
    }


def _unreachable(answer: object, operation: str) -> ProviderError:
    code = "connect_failed" if isinstance(answer, NotSent) else "no_answer"
    return ProviderError("unreachable", code, f"the provider did not answer {operation}")


def _texts(message: OutboundMessage) -> tuple[str, ...]:
    """What a provider could quote back to us in the text of a refusal."""
    return (*(message.template_vars or ()), *_strings(message.payload or {}))


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for each in inner for text in _strings(each)]
