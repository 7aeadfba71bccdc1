"""The simulated hosted API's operations: messages as planned, everything else as it would be done there."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from aiohttp import web

from recado.channels.chatapp.cloud_messages import PRODUCT
from recado.domain.core.base64url import base64url, from_base64url
from recado.domain.core.counting import counted
from recado.simulator import cloud_webhooks
from recado.simulator.cloud_state import CloudState, new_flow, new_template
from recado.simulator.upload_forms import TooLong, read_form

REVIEW_SECONDS = 1.0

_VARIABLE = re.compile(r"\{\{[^{}]*\}\}")
_STATUS_OF = {190: 401, 0: 401, 10: 403, 368: 403, 131031: 403, 1: 500, 2: 503, 131000: 500, 131016: 503, 4: 429}
_STATUS_OF |= {80007: 429, 130429: 429, 132001: 404}
_NOT_SENDABLE = {"PAUSED": 132015, "DISABLED": 132016}
_FLOW_MOVES = {"publish": ("DRAFT", "PUBLISHED"), "deprecate": ("PUBLISHED", "DEPRECATED")}
_UNOPENED = {"THROTTLED": 132069, "BLOCKED": 132068}
_MEDIA = frozenset({"image", "video", "audio", "document", "sticker"})
_EDITABLE = frozenset({"APPROVED", "REJECTED", "PAUSED"})
_MOST_ON_A_PAGE = 250

Tell = Callable[[cloud_webhooks.Entry], None]
"""An event for the service."""

Later = Callable[[float, Callable[[], None]], object]
"""(seconds from now, what to do then)."""


class CloudError(Exception):
    """An answer with an error code of the API."""

    def __init__(
        self,
        code: int,
        details: str = "as the simulation has it",
        *,
        subcode: int | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(details)
        self.code = code
        self._details = details
        self._subcode = subcode
        self._status = status or _STATUS_OF.get(code, 400)

    def answer(self, retry_after: int | None = None) -> web.Response:
        error = {**cloud_webhooks.error(self.code, self._details), "type": "OAuthException", "fbtrace_id": "simulated"}
        if self._subcode is not None:
            error["error_subcode"] = self._subcode
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        return json_answer({"error": error}, self._status, headers)


def json_answer(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(document), headers=headers, content_type="application/json")


class CloudApi:
    """All operations but sending, which `server.py` plans; `check` says what makes a send impossible."""

    def __init__(self, state: CloudState, tell: Tell, later: Later) -> None:
        self._state = state
        self._tell = tell
        self._later = later

    def resume(self) -> None:
        """Reviews that an earlier life had begun."""
        for account, template in self._state.pending_templates():
            self._review(account, template)

    async def answer(self, request: web.BaseRequest, base: str, segments: list[str]) -> web.StreamResponse:
        """`base`: our own address; `segments`: of the path. Raises `CloudError`, for a bad body KeyError and so on."""
        method, edge = request.method, segments[-1]
        owner = segments[-2] if len(segments) > 1 else ""
        match method, edge:
            case "POST", "media":
                return await self._upload(request)
            case "GET", "content":
                return self._content(owner)
            case "GET", "message_templates":
                return self._list_templates(owner, request.query, f"{base}{request.path}")
            case "DELETE", "message_templates":
                return self._delete_templates(owner, request.query)
            case "POST", "publish" | "deprecate":
                return self._move_flow(owner, *_FLOW_MOVES[edge])
            case "GET", edge if edge == f"{PRODUCT}_business_profile":
                profile = {"messaging_product": PRODUCT, **self._state.number(owner).profile}
                return json_answer({"data": [profile]})
            case "GET", _:
                return self._object(edge, base, "fields" in request.query)
            case "DELETE", _:
                return json_answer({"success": self._state.delete_media(edge)})
        return self._change(owner, edge, orjson.loads(await request.read()))

    def check(self, number_id: str, body: Mapping[str, Any]) -> None:
        """Raises `CloudError` for a send that the API refuses whatever it was planned to do."""
        if self._state.number(number_id).status in ("DISCONNECTED", "DELETED"):
            raise CloudError(133010, "the number is not registered")
        kind = body["type"]
        content = body[kind]
        if kind == "template":
            self._check_template(content)
        elif kind == "interactive" and content["type"] == "flow":
            self._check_flow(str(content["action"]["parameters"]["flow_id"]))
        elif kind in _MEDIA and "id" in content and self._state.media(str(content["id"])) is None:
            raise CloudError(131053, "there is no such media")

    def _check_template(self, content: Mapping[str, Any]) -> None:
        held = self._state.template_to_send(str(content["name"]), str(content["language"]["code"]))
        if held is None or held["status"] not in ("APPROVED", *_NOT_SENDABLE):
            raise CloudError(132001, "the template does not exist in this language")
        if held["status"] in _NOT_SENDABLE:
            raise CloudError(_NOT_SENDABLE[held["status"]])
        texts = [str(each.get("text", "")) for each in held["components"] if each.get("type") == "BODY"]
        wanted = len(set(_VARIABLE.findall(texts[0]))) if texts else 0
        given = [each for each in content.get("components", ()) if str(each.get("type")).lower() == "body"]
        if texts and texts[0] and (len(given[0]["parameters"]) if given else 0) != wanted:
            raise CloudError(132000, f"the body takes {counted(wanted, 'parameter')}")

    def _check_flow(self, flow_id: str) -> None:
        status = None if (found := self._state.flow(flow_id)) is None else found[1]["status"]
        if status != "PUBLISHED":
            raise CloudError(_UNOPENED.get(str(status), 131009), "no such flow can be opened")

    # Objects ----------------------------------------------------------------------------------------------------------

    def _object(self, object_id: str, base: str, as_number: bool) -> web.Response:
        media = self._state.media(object_id)
        if media is not None:
            return json_answer(
                {
                    "messaging_product": PRODUCT,
                    "id": media.id,
                    "url": f"{base}/{media.id}/content",
                    "mime_type": media.mime_type,
                    "sha256": media.sha256,
                    "file_size": len(media.content),
                }
            )
        found = self._state.template_by_id(object_id)
        if found is not None:
            return json_answer(found[1])
        if (flow := self._state.flow(object_id)) is not None:
            return json_answer(flow[1])
        if as_number or self._state.knows_number(object_id):
            return json_answer(self._state.number(object_id).fields())
        raise CloudError(100, "no such object", subcode=33)

    def _change(self, owner: str, edge: str, body: dict[str, Any]) -> web.Response:
        match edge:
            case "subscribed_apps":
                pass
            case "register" | "deregister":
                if edge == "register" and not re.fullmatch(r"\d{6}", str(body.get("pin"))):
                    raise CloudError(100, "pin has six digits")
                number = self._state.number(owner)
                number.status = "CONNECTED" if edge == "register" else "DISCONNECTED"
                self._state.changed(number)
            case "message_templates":
                return self._submit(owner, body)
            case "flows":
                return self._make_flow(owner, body)
            case edge if edge == f"{PRODUCT}_business_profile":
                number = self._state.number(owner)
                number.profile |= {name: value for name, value in body.items() if name != "messaging_product"}
                self._state.changed(number)
            case _ if (held := self._state.template_by_id(edge)) is not None:
                return self._edit(*held, body)
            case _:
                raise CloudError(100, "no such edge", subcode=33, status=404)
        return json_answer({"success": True})

    # Templates --------------------------------------------------------------------------------------------------------

    def _submit(self, account: str, body: dict[str, Any]) -> web.Response:
        template = new_template(account, body)
        if template["id"] in self._state.templates(account):
            raise CloudError(100, "there is a template of this name in this language", subcode=2388024)
        self._state.store_template(account, template)
        self._review(account, template)
        return json_answer({name: template[name] for name in ("id", "status", "category")})

    def _edit(self, account: str, held: dict[str, Any], body: dict[str, Any]) -> web.Response:
        if held["status"] not in _EDITABLE:
            raise CloudError(100, f"a template that is {held['status']} cannot be edited")
        category = str(body.get("category", held["category"])).upper()
        if "category" in body and held["status"] == "APPROVED":
            raise CloudError(100, "the category of an approved template stays")
        components = list(body.get("components", held["components"]))
        edited = {**held, "category": category, "components": components, "status": "PENDING"}
        self._state.store_template(account, edited)
        self._review(account, edited)
        return json_answer({"success": True, **{name: edited[name] for name in ("id", "name", "category")}})

    def _review(self, account: str, template: dict[str, Any]) -> None:
        self._later(REVIEW_SECONDS, lambda: self._decide(account, template["id"]))

    def _decide(self, account: str, template_id: str) -> None:
        """The verdict stands in the template's name."""
        template = self._state.templates(account).get(template_id)
        if template is None or template["status"] != "PENDING":
            return
        rejected = "reject" in template["name"]
        reason = "INCORRECT_CATEGORY" if rejected else "NONE"
        decided = {**template, "status": "REJECTED" if rejected else "APPROVED", "rejected_reason": reason}
        self._state.store_template(account, decided)
        self._tell(cloud_webhooks.template_status(account, datetime.now(UTC), decided, decided["status"], reason))

    def _list_templates(self, account: str, query: Mapping[str, str], address: str) -> web.Response:
        held = [
            template
            for template in self._state.templates(account).values()
            if all(
                template[name] == query[name] for name in ("name", "status", "language", "category") if name in query
            )
        ]
        size = min(int(query.get("limit", "25")), _MOST_ON_A_PAGE)
        start = int(from_base64url(query["after"])) if "after" in query else 0
        page = held[start : start + size]
        cursors = {"before": _cursor(start), "after": _cursor(start + len(page))}
        paging: dict[str, Any] = {"cursors": cursors}
        if start + size < len(held):
            paging["next"] = f"{address}?limit={size}&after={cursors['after']}"
        answer: dict[str, Any] = {"data": page, "paging": paging}
        if "summary" in query:
            counts = {"total_count": len(held), "message_template_count": len(held), "message_template_limit": 6_000}
            answer["summary"] = {**counts, "are_translations_complete": True}
        return json_answer(answer)

    def _delete_templates(self, account: str, query: Mapping[str, str]) -> web.Response:
        wanted = [
            each["id"]
            for each in self._state.templates(account).values()
            if each["name"] == query["name"] and query.get("hsm_id", each["id"]) == each["id"]
        ]
        if not wanted:
            raise CloudError(100, "there is no such template", subcode=2593002)
        for template_id in wanted:
            self._state.delete_template(account, template_id)
        return json_answer({"success": True})

    # Flows ------------------------------------------------------------------------------------------------------------

    def _make_flow(self, account: str, body: dict[str, Any]) -> web.Response:
        flow = new_flow(account, body, datetime.now(UTC))
        if self._state.has_flow(account, flow["name"]):
            raise CloudError(100, "there is a flow of this name")
        self._state.store_flow(account, flow)
        faults = flow["validation_errors"]
        return json_answer({"id": flow["id"], "success": not faults, "validation_errors": faults})

    def _move_flow(self, flow_id: str, before: str, after: str) -> web.Response:
        found = self._state.flow(flow_id)
        if found is None:
            raise CloudError(100, "there is no such flow", subcode=33)
        if found[1]["status"] != before or found[1]["validation_errors"]:
            raise CloudError(100, f"the flow does not become {after}")
        self.change_flow(*found, after)
        return json_answer({"success": True})

    def change_flow(self, account: str, held: dict[str, Any], status: str) -> None:
        """The flow is in this state from now on, and the service hears of it."""
        changed = {**held, "status": status}
        self._state.store_flow(account, changed)
        self._tell(cloud_webhooks.flow_status(account, datetime.now(UTC), changed, held["status"]))

    # Media ------------------------------------------------------------------------------------------------------------

    async def _upload(self, request: web.BaseRequest) -> web.Response:
        try:
            form = await read_form(request)
        except TooLong:
            raise CloudError(131053, "too long") from None
        if form.fields.get("messaging_product") != PRODUCT.encode() or not form.content:
            raise CloudError(100, "messaging_product and file are required")
        media = self._state.store_media(bytes(form.content), form.mime_type, datetime.now(UTC))
        return json_answer({"id": media.id})

    def _content(self, media_id: str) -> web.Response:
        media = self._state.media(media_id)
        if media is None:
            raise CloudError(100, "no such media", subcode=33)
        return web.Response(body=media.content, headers={"Content-Type": media.mime_type})


def _cursor(place: int) -> str:
    return base64url(str(place).encode())
