"""The examples of docs/bridge.md are what the adapter sends, reads and believes."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import BodyPartReader, web
from aiohttp.test_utils import TestServer
from tests.channels.accounts import chatapp_account

from recado.channels.chatapp import bridge_answers
from recado.channels.chatapp.account import ChatappDetails
from recado.channels.chatapp.bridge import Bridge
from recado.channels.core.bridge.bridge_callbacks import channel_events
from recado.channels.core.events import FlowNews, Inbound, NumberNews, Preference, Status, TemplateVerdict
from recado.channels.core.provider import Accepted, OutboundMessage, TemplateContent
from recado.channels.core.refusals import PROVIDER_CODES
from recado.channels.core.signing import PROVIDER_SIGNATURE
from recado.domain.core.ids import MESSAGE, is_id
from recado.engine.clock import SystemClock

PAGE = (Path(__file__).parents[2] / "docs" / "bridge.md").read_text("utf-8")


def example(name: str) -> str:
    found = re.search(rf"<!-- example: {name} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, name
    return found.group(1)


def bridge(secret: str, url: str = "http://127.0.0.1:1") -> Bridge:
    callback_url = json.loads(example("send"))["callbackUrl"]
    return Bridge(url=url, token="token", secret=secret, callback_url=callback_url, clock=SystemClock())


async def test_a_send_looks_as_on_the_page() -> None:
    wanted = json.loads(example("send"))
    received: list[tuple[str | None, Any]] = []

    async def send(request: web.Request) -> web.Response:
        received.append((request.headers.get("Idempotency-Key"), await request.json()))
        return web.json_response({"providerMessageId": "prov-77"})

    application = web.Application()
    application.router.add_post("/base/send", send)
    template = wanted["content"]["template"]
    message = OutboundMessage(
        id=wanted["id"],
        organization_id=wanted["organizationId"],
        env=wanted["env"],
        channel=wanted["channel"],
        sender_id="num_1",
        to=wanted["to"],
        type=wanted["content"]["type"],
        template=TemplateContent(category="utility", **template),
    )
    account = chatapp_account(organization_id=wanted["organizationId"], phone_number_id=wanted["account"])
    async with TestServer(application) as server:
        adapter = bridge("secret", str(server.make_url("/base")))
        await adapter.start()
        outcome = await adapter.send(message, account, 1)
        await adapter.stop()

    assert is_id(MESSAGE, wanted["id"])
    assert received == [(wanted["id"], wanted)]
    assert outcome == Accepted("prov-77")


def test_the_answers_of_the_other_operations_are_read_whole() -> None:
    health = bridge_answers.number_health(json.loads(example("number_health")))
    assert (health.status, health.per_second, health.verified_name) == ("connected", 80, "Padaria Central")
    assert health.profile is not None
    assert len(health.issues) == 1

    [template] = bridge_answers.templates(json.loads(example("list_templates")))
    assert (template.name, template.status) == ("order_ready", "approved")


def test_every_kind_of_event_is_read() -> None:
    events = channel_events(example("callback").encode())
    kinds = [Status, Status, Inbound, TemplateVerdict, NumberNews, FlowNews, Preference]
    assert [type(event) for event in events] == kinds
    assert isinstance(events[1], Status)
    assert events[1].code == "recipient_unreachable"


def test_the_codes_of_a_refusal_are_those_that_are_known() -> None:
    listed = PAGE.partition("Codes that Recado knows:")[2].partition("Every other")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == {code.value for code in PROVIDER_CODES}


def test_the_signature_of_the_page_is_believed_and_its_code_makes_it() -> None:
    shown = dict(line.split(maxsplit=1) for line in example("signature").splitlines())
    code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(compile(code.group(1), "bridge.md", "exec"), names)
    body, at = shown["body"].encode(), datetime.fromtimestamp(int(shown["time"]), UTC)

    assert names["signature"](shown["secret"], body, int(shown["time"])) == shown["header"]
    adapter = bridge(shown["secret"])
    headers = {PROVIDER_SIGNATURE: shown["header"]}
    assert adapter.verify_callback(headers, body, at + timedelta(seconds=300))
    assert not adapter.verify_callback(headers, body, at + timedelta(seconds=301))
    assert not adapter.verify_callback(headers, body + b" ", at)
    assert len(adapter.parse_callback(headers, body)) == 1


async def test_an_upload_says_what_stands_on_the_page() -> None:
    wanted = json.loads(example("upload_media"))
    received: list[tuple[str | None, bytes]] = []

    async def upload(request: web.Request) -> web.Response:
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            received.append((part.name, bytes(await part.read())))
        return web.json_response({"mediaId": "m-1"})

    async def file() -> AsyncIterator[bytes]:
        yield bytes(wanted["size"])

    application = web.Application()
    application.router.add_post("/base/upload_media", upload)
    details = ChatappDetails(business_account_id=wanted["businessAccount"])
    account = replace(
        chatapp_account(organization_id=wanted["organizationId"], phone_number_id=wanted["account"]), details=details
    )
    async with TestServer(application) as server:
        adapter = bridge("secret", str(server.make_url("/base")))
        await adapter.start()
        try:
            media_id = await adapter.upload_media(
                account, file(), size=wanted["size"], mime_type=wanted["mimeType"], filename=wanted["filename"]
            )
        finally:
            await adapter.stop()
    assert media_id == "m-1"
    assert [name for name, _ in received] == ["request", "file"]
    assert json.loads(received[0][1]) == wanted
    assert received[1][1] == bytes(wanted["size"])
