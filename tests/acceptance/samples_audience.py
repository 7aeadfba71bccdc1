"""Samples of the operations on lists and segments; see samples.py."""

from typing import Any

from tests.acceptance.caller import Request
from tests.acceptance.samples import new, sample
from tests.acceptance.tenants import SEEN, Tenant
from tests.program import Api

from recado.domain.core.ids import CONTACT, LIST, SEGMENT

_spares: dict[tuple[str, str], str] = {}


async def spare(api: Api, tenant: Tenant, path: str, body: dict[str, Any]) -> str:
    """One record of its kind that may be changed."""
    key = (tenant.organization_id, path)
    if key not in _spares:
        _spares[key] = (await api.call("POST", path, body))["id"]
    return _spares[key]


@sample("listLists", "listSegments")
async def nothing_asked(api: Api, tenant: Tenant) -> Request:
    return Request()


@sample("createList")
async def new_list(api: Api, tenant: Tenant) -> Request:
    return Request(body={"name": new("list "), "description": "of the walk"})


@sample("getList")
async def one_list(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[LIST]})


@sample("updateList")
async def list_change(api: Api, tenant: Tenant) -> Request:
    list_id = await spare(api, tenant, "/v2/lists", {"name": new("spare list ")})
    return Request({"id": list_id}, body={"name": new("renamed list ")})


@sample("deleteList")
async def list_to_delete(api: Api, tenant: Tenant) -> Request:
    return Request({"id": (await api.call("POST", "/v2/lists", {"name": new("list ")}))["id"]})


@sample("addListMembers", "replaceListMembers", "removeListMembers")
async def member(api: Api, tenant: Tenant) -> Request:
    list_id = await spare(api, tenant, "/v2/lists", {"name": new("spare list ")})
    return Request({"id": list_id}, body={"contactIds": [tenant.ids[CONTACT]], "phones": [], "externalIds": ["x"]})


@sample("createSegment")
async def new_segment(api: Api, tenant: Tenant) -> Request:
    return Request(body={"name": new("segment "), "filters": [SEEN]})


@sample("previewSegment")
async def preview(api: Api, tenant: Tenant) -> Request:
    return Request(body={"filterTree": {"kind": "not", "child": {"kind": "leaf", "filter": SEEN}}})


@sample("getSegment", "listSegmentContacts")
async def one_segment(api: Api, tenant: Tenant) -> Request:
    return Request({"segmentId": tenant.ids[SEGMENT]})


@sample("updateSegment")
async def segment_change(api: Api, tenant: Tenant) -> Request:
    segment_id = await spare(api, tenant, "/v2/segments", {"name": new("spare segment "), "filters": [SEEN]})
    return Request({"segmentId": segment_id}, body={"name": new("renamed segment ")})


@sample("deleteSegment")
async def segment_to_delete(api: Api, tenant: Tenant) -> Request:
    made = await api.call("POST", "/v2/segments", {"name": new("segment "), "filters": [SEEN]})
    return Request({"segmentId": made["id"]})
