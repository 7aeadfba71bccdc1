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
from typing_extensions import Unpack
from yarl import URL

from recado.channels.chatapp import (
    cloud_answers,
    cloud_callbacks,
    cloud_flows,
    cloud_media,
    cloud_messages,
    cloud_templates,
)
from recado.channels.chatapp.account import details_of
from recado.channels.chatapp.cloud_messages import PRODUCT
from recado.channels.chatapp.template_listing import TemplateListing
from recado.channels.core import media_transfer
from recado.channels.core.answers import arrived
from recado.channels.core.errors import ProviderError
from recado.channels.core.events import Event
from recado.channels.core.http_provider import HttpOptions, HttpProvider, json_headers, texts_of
from recado.channels.core.media import OpenMedia
from recado.channels.core.provider import (
    Account,
    Down,
    FlowDefinition,
    NumberHealth,
    OutboundMessage,
    Outcome,
    ProviderTemplate,
    Refused,
    Submission,
    TemplateSubmission,
)
from recado.channels.core.references import NamedBy
from recado.channels.core.signing import header, signing_key
from recado.channels.http.answer import Answer
from recado.channels.http.outbound_http import MAX_ANSWER, MEDIA_CONNECTIONS

_is_id = re.compile(r"[0-9A-Za-z_\-]{1,1024}").fullmatch
_PRODUCT = {"messaging_product": PRODUCT}
_PROFILE = f"{PRODUCT}_business_profile"
_PAGE = 50  # templates
_MOST_PAGES = 120  # an account holds at most 6,000 templates
_LONGEST_PAGE = 2 * 1024 * 1024  # bytes: it is parsed in one go
_LONGEST_LIST = 32 * 1024 * 1024  # bytes of all pages
_HEADS_REMEMBERED = 1_000  # of numbers: what begins each of their sends


class Cloud(HttpProvider):
    """`app_secret`: what signs its callbacks; `verify_token`: what it must know before it may subscribe; None: nobody
    may.
    """

    name = "cloud"
    noun = cloud_answers.NOUN
    idempotent = False
    looked_up_by = frozenset({NamedBy.THEIR_ID})  # where a person quotes it: its reports tell our id and the number
    paces_pairs = True
    challenged = True

    def __init__(self, *, app_secret: str, verify_token: str | None = None, **options: Unpack[HttpOptions]) -> None:
        super().__init__(**options)
        self._secret = signing_key(app_secret)
        self._verify_token = verify_token
        self._send_head = lru_cache(_HEADS_REMEMBERED)(self._make_send_head)
        self._media = self._pool(MEDIA_CONNECTIONS)

    async def start(self) -> None:
        await super().start()
        await self._media.start()

    async def stop(self) -> None:
        await super().stop()
        await self._media.stop()

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        token = details_of(account).access_token
        if token is None:
            return Down("unauthorized")
        if not _is_id(account.provider_id):
            return Down("not_found")
        try:
            body = orjson.dumps(cloud_messages.body(message))
        except cloud_messages.Unsendable as error:
            return Refused("provider_error", str(error))
        except TypeError:
            return Refused("provider_error", "the message has no JSON form")
        try:
            head = self._send_head(account.provider_id, token)
        except ValueError:  # no token looks like that
            return Down("unauthorized")
        answer = await self._sends.post(head, body)
        return cloud_answers.outcome(answer, self._clock.now(), personal=lambda: [token, *texts_of(message)])

    def _make_send_head(self, phone_number_id: str, token: str) -> bytes:
        return self._sends.head((self._base / phone_number_id / "messages").raw_path, json_headers(token))

    def verify_callback(self, headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        return cloud_callbacks.is_signed(header(headers, cloud_callbacks.SIGNATURE), self._secret, body)

    @staticmethod
    def parse_callback(headers: Mapping[str, str], body: bytes) -> list[Event]:
        return cloud_callbacks.events(body)

    def answer_challenge(self, query: Mapping[str, str]) -> str | None:
        return cloud_callbacks.challenge(query, self._verify_token)

    # Numbers ----------------------------------------------------------------------------------------------------------

    async def number_health(self, account: Account) -> NumberHealth:
        number = await self._call("GET", account, account.provider_id, query={"fields": cloud_answers.HEALTH_FIELDS})
        wanted = {"fields": cloud_answers.PROFILE_FIELDS}
        profile = await self._call("GET", account, account.provider_id, _PROFILE, query=wanted)
        return cloud_answers.number_health(number, profile)

    async def update_profile(self, account: Account, profile: Mapping[str, str]) -> None:
        """Everything but the picture, which the API takes from an upload of the application's owner only.

        A field that is left out is emptied: `profile` is the whole of it.
        """
        fields = {name: profile.get(name, "") for name in ("address", "email")}
        fields |= {name: profile[name] for name in ("about", "vertical") if profile.get(name)}  # these cannot be empty
        websites = [profile["website"]] if profile.get("website") else []
        body = {**_PRODUCT, **fields, "websites": websites}
        await self._call("POST", account, account.provider_id, _PROFILE, body=body)

    async def connect(self, account: Account) -> None:
        """Let the account's callbacks come to us, and register the number."""
        await self._call("POST", account, details_of(account).business_account_id, "subscribed_apps", body={})
        body = {**_PRODUCT, "pin": self._pin(account)}
        await self._call("POST", account, account.provider_id, "register", body=body)

    async def disconnect(self, account: Account) -> None:
        await self._call("POST", account, account.provider_id, "deregister", body=_PRODUCT)

    # Templates --------------------------------------------------------------------------------------------------------

    async def submit_template(self, account: Account, template: TemplateSubmission) -> Submission:
        """Make the template there; one that is there already is edited, for its name and language are taken."""
        known = template.provider_template_id
        held = None if known is None else await self._held_template(account, known)
        if known is not None and held is not None:
            await self._call("POST", account, known, body=cloud_templates.edit(template, held.get("category")))
            return Submission(known)
        made = await self._templates("POST", account, body=cloud_templates.submission(template))
        answer = self._result(account, made)
        template_id = cloud_answers.id_of(answer)
        return Submission(template_id, cloud_templates.verdict(answer, template_id, self._clock.now()))

    async def _held_template(self, account: Account, template_id: str) -> Mapping[str, Any] | None:
        """What the provider holds under that id; None when it was deleted there."""
        try:
            return await self._call("GET", account, template_id, query={"fields": "category"})
        except ProviderError as error:
            if error.code != "not_found":
                raise
            return None

    async def delete_template(self, account: Account, name: str, provider_template_id: str | None) -> None:
        wanted = {"name": name}
        if provider_template_id is not None:  # else all languages of that name
            wanted["hsm_id"] = provider_template_id
        self._result(account, await self._templates("DELETE", account, query=wanted))

    async def list_templates(self, account: Account) -> list[ProviderTemplate]:
        listing = TemplateListing()
        wanted = {"fields": cloud_templates.LISTED_FIELDS, "limit": str(_PAGE)}
        left = _LONGEST_LIST
        for _ in range(_MOST_PAGES):
            answer = await self._templates("GET", account, query=wanted, longest=min(_LONGEST_PAGE, left))
            left -= len(answer.body)
            page = self._result(account, answer)
            for template in cloud_templates.listed(page):
                listing.take(template)
                await self._clock.sleep(0)  # a template may be long: others have their turn between two
            after = cloud_templates.next_page(page)
            if after is None:
                break
            wanted["after"] = after
        return listing.ended(account)

    async def _templates(self, method: str, account: Account, **options: Any) -> Answer:
        business_account = details_of(account).business_account_id
        return await self._asked(method, account, business_account, "message_templates", **options)

    # Flows ------------------------------------------------------------------------------------------------------------

    async def create_flow(self, account: Account, flow: FlowDefinition) -> str:
        business_account = details_of(account).business_account_id
        return cloud_flows.made(
            await self._call("POST", account, business_account, "flows", body=cloud_flows.definition(flow))
        )

    async def publish_flow(self, account: Account, provider_flow_id: str) -> None:
        await self._call("POST", account, provider_flow_id, "publish", body={})

    async def deprecate_flow(self, account: Account, provider_flow_id: str) -> None:
        try:
            await self._call("POST", account, provider_flow_id, "deprecate", body={})
        except ProviderError as error:
            if error.kind != "refused" or not await self._is_deprecated(account, provider_flow_id):
                raise

    async def _is_deprecated(self, account: Account, provider_flow_id: str) -> bool:
        """Whether an earlier call did it whose answer was lost: the API refuses the same once more."""
        held = await self._call("GET", account, provider_flow_id, query={"fields": "status"})
        return cloud_flows.STATES_READ.get(str(held.get("status"))) == "deprecated"

    # Media ------------------------------------------------------------------------------------------------------------

    async def upload_media(
        self, account: Account, content: AsyncIterable[bytes | memoryview], *, size: int, mime_type: str, filename: str
    ) -> str:
        """Hand over `size` bytes; the id under which messages of this number send them. Raises `ProviderError`."""
        form = media_transfer.upload_form(
            cloud_media.upload_fields(mime_type), content, size=size, mime_type=mime_type, filename=filename
        )
        token = _token(account)
        headers = {**json_headers(token), "Content-Type": form.content_type, "Content-Length": str(form.length)}
        answer = await self._media.request(
            "POST",
            self._url(account.provider_id, "media"),
            headers,
            owner=account.owner,
            body=form.parts,
            timeout=media_transfer.UPLOAD_TIMEOUT,
        )
        return cloud_answers.id_of(self._result(account, arrived(answer, "upload_media", self.noun)))

    @asynccontextmanager
    async def open_media(self, account: Account, media_ref: str) -> AsyncIterator[OpenMedia]:
        """Read media that a person sent (`Inbound.media_ref`), or that was uploaded. Raises `ProviderError`."""
        answer = await self._call("GET", account, media_ref)
        media = cloud_answers.read(cloud_media.MEDIA, answer, "media")
        url, size = cloud_media.download_address(media["url"], self._base), media.get("file_size")
        try:
            async with self._media.download(
                url, json_headers(_token(account)), owner=account.owner, timeout=media_transfer.UPLOAD_TIMEOUT
            ) as (status, _, chunks):
                if status != 200:
                    raise ProviderError("unreachable", "no_answer", f"the provider answered with status {status}")
                yield OpenMedia(media["mime_type"], size, media.get("sha256"), media_transfer.chunks_of(chunks, size))
        except OSError:
            raise ProviderError("unreachable", "no_answer", "the provider did not answer open_media") from None

    # Parts ------------------------------------------------------------------------------------------------------------

    def _pin(self, account: Account) -> str:
        """The second factor of a number's registration, the same each time: six digits from our secret and its id."""
        digest = hmac.new(self._secret, account.provider_id.encode(), hashlib.sha256).digest()
        return f"{int.from_bytes(digest[:8], 'big') % 1_000_000:06}"

    def _url(self, object_id: str, edge: str) -> URL:
        """The address of an object's edge; raises `ProviderError` for an id that would be a path of its own."""
        if not _is_id(object_id):
            raise ProviderError("refused", "provider_error", "the id is none that this provider gives")
        return self._base / object_id / edge if edge else self._base / object_id

    async def _call(
        self,
        method: str,
        account: Account,
        object_id: str,
        edge: str = "",
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any]:
        """One operation other than a send; raises `ProviderError`."""
        return self._result(account, await self._asked(method, account, object_id, edge, query=query, body=body))

    def _result(self, account: Account, answer: Answer) -> Mapping[str, Any]:
        return cloud_answers.operation_result(answer, personal=(_token(account),))

    async def _asked(
        self,
        method: str,
        account: Account,
        object_id: str,
        edge: str = "",
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        longest: int = MAX_ANSWER,
    ) -> Answer:
        """The answer to one of these operations, whatever it says; raises `ProviderError` where none came."""
        url, token = self._url(object_id, edge) % (query or {}), _token(account)
        sent = None if body is None else orjson.dumps(body)
        answer = await self._http.request(
            method, url, json_headers(token), owner=account.owner, body=sent, longest=longest
        )
        return arrived(answer, f"{method} {edge}".strip(), self.noun)


def _token(account: Account) -> str:
    token = details_of(account).access_token
    if token is None:
        raise ProviderError("unreachable", "unauthorized", "the number has no access token")
    return token
