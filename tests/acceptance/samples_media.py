"""Samples of the operations on media; see samples.py."""

import base64
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import aiohttp
from tests.acceptance.caller import Request
from tests.acceptance.samples import new, sample
from tests.acceptance.samples_numbers import number
from tests.acceptance.samples_social import connected_account
from tests.acceptance.tenants import CUSTOMER, Tenant
from tests.media_files import PNG
from tests.program import Api
from tests.waiting import until

from recado.domain.core.ids import MEDIA, NUMBER

PARTS = ("owner", "env", "kind", "year", "month", "name")


@sample("uploadMedia")
async def upload(api: Api, tenant: Tenant) -> Request:
    return replace(await number(api, status="connected"), body=in_json())


@sample("uploadMediaBinary")
async def binary(api: Api, tenant: Tenant) -> Request:
    return replace(await number(api, status="connected"), headers=binary_headers(), raw=PNG)


@sample("uploadSocialMedia")
async def social_upload(api: Api, tenant: Tenant) -> Request:
    return replace(await connected_account(api, tenant), body=in_json())


@sample("uploadSocialMediaBinary")
async def social_binary(api: Api, tenant: Tenant) -> Request:
    return replace(await connected_account(api, tenant), headers=binary_headers(), raw=PNG)


def in_json() -> dict[str, str]:
    return {"filename": new("dot"), "mimeType": "image/png", "dataBase64": base64.b64encode(PNG).decode()}


def binary_headers() -> dict[str, str]:
    return {"Content-Type": "application/octet-stream", "x-filename": new("dot"), "x-content-type": "image/png"}


@sample("getMedia")
async def one_upload(api: Api, tenant: Tenant) -> Request:
    return Request({"mediaId": tenant.ids[MEDIA]})


@sample("downloadMedia")
async def what_came(api: Api, tenant: Tenant) -> Request:
    """Copied already, so that nothing of it changes any more."""
    media = {"mimeType": "image/png", "dataBase64": base64.b64encode(PNG).decode()}
    body = {"numberId": tenant.ids[NUMBER], "from": CUSTOMER, "media": media}
    message_id = (await api.call("POST", "/v2/sandbox/inbound", body))["messageId"]

    async def copied() -> bool:
        return "mediaStorage" in await api.call("GET", f"/messages/{message_id}")

    await until(copied, "the media is copied")
    return Request({"id": message_id})


@sample("openStoredFile")
async def signed_address(api: Api, tenant: Tenant) -> Request:
    message_id = (await what_came(api, tenant)).path["id"]
    async with (
        aiohttp.ClientSession() as session,
        session.get(
            f"{api.url}/messages/{message_id}/media",
            params={"redirect": "1"},
            headers={"Authorization": f"Bearer {tenant.token}"},
            allow_redirects=False,
        ) as answer,
    ):
        at = urlsplit(answer.headers["Location"])
    return Request(dict(zip(PARTS, at.path.split("/")[2:], strict=True)), query=dict(parse_qsl(at.query)))
