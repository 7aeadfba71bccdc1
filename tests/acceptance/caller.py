"""Calls an operation of the route table, and holds every answer to what all answers must be (C2.3.8, C4.1, C6.1)."""

import io
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from urllib.parse import quote, urlencode

import aiohttp
import orjson
from openapi_schema_validator import OAS31Validator
from tests.refusals import comparable

from recado.domain.core.errors import CODES
from recado.http.api.route import Access, Route

REQUEST_ID = re.compile(r"req_[0-9A-Za-z]{21}")
PROBLEM: Final = {"$ref": "#/components/schemas/Problem"}


@dataclass(frozen=True, slots=True)
class Request:
    """What a caller sends to an operation, apart from the credential."""

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None  # instead of `body`
    token: str | None = None  # of the one credential with which it succeeds, where that is not the tenant's

    @property
    def content(self) -> bytes | None:
        return self.raw if self.body is None else orjson.dumps(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: the parsed body, or None without one."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> str:
        return str(self.body["code"]) if self.body else ""

    @property
    def told(self) -> tuple[int, Any]:
        """The answer without what belongs to the one request: what a caller could tell two refusals apart by."""
        return self.status, comparable(self.body)

    @property
    def pointers(self) -> list[str]:
        return [error["path"] for error in self.body.get("errors", ())]


class Caller:
    """One client of the service at `url`. `document`: its OpenAPI document, which every answer is held against."""

    def __init__(self, session: aiohttp.ClientSession, url: str, document: Any) -> None:
        self._session = session
        self._url = url
        self._document = document
        self._components = _strict(document["components"])

    async def send(self, method: str, target: str, *, headers: Mapping[str, str], content: Any = None) -> Answer:
        """A request to any address."""
        data = io.BytesIO(content) if isinstance(content, bytes) else content
        async with self._session.request(
            method, self._url + target, data=data, headers=headers, allow_redirects=False
        ) as answer:
            text = await answer.read()
            is_json = "json" in answer.headers.get("Content-Type", "")
            return Answer(answer.status, orjson.loads(text) if text and is_json else text or None, answer.headers)

    async def call(self, route: Route, request: Request, token: str | None) -> Answer:
        """A request to an operation, its answer checked. `token`: None sends no credential."""
        path = re.sub(r"\{(\w+)\}", lambda name: quote(request.path[name[1]], safe=""), route.path)
        query = f"?{urlencode(request.query, doseq=True)}" if request.query else ""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if request.content is not None:
            headers["Content-Type"] = "application/json"
        answer = await self.send(
            route.method, path + query, headers={**headers, **request.headers}, content=request.content
        )
        self._check(route, path, answer)
        return answer

    def _check(self, route: Route, path: str, answer: Answer) -> None:
        said = f"{answer.status} {answer.body!r:.600}"
        request_id = answer.headers.get("X-Request-Id", "")
        assert REQUEST_ID.fullmatch(request_id), f"no request id: {said}"
        if route.access is not Access.PUBLIC:
            assert answer.headers["Cache-Control"].removeprefix("private, ") == "no-store", said
        if route.access is Access.KEY and answer.status != 401:
            for name in ("RateLimit-Policy", "RateLimit"):
                assert answer.headers.get(name, "").startswith(f'"{route.rate_class}";'), f"no {name}: {said}"
        if answer.status >= 400:
            self._check_problem(path, request_id, answer)
        if answer.status == 401 and route.access is not Access.CALLBACK:  # a signature has no scheme to ask for
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        if route.documented:
            self._check_document(route, answer, said)

    def _check_problem(self, path: str, request_id: str, answer: Answer) -> None:
        assert answer.headers["Content-Type"] == "application/problem+json"
        body = answer.body
        assert self.misfits(PROBLEM, body) == []
        assert (body["status"], body["instance"], body["requestId"]) == (answer.status, path, request_id)
        code = CODES[body["code"]]
        assert (body["kind"], body["title"]) == (code.kind, code.title)
        assert body["type"].endswith("/problems/" + body["code"].lower().replace("_", "-"))

    def _check_document(self, route: Route, answer: Answer, said: str) -> None:
        responses = self._document["paths"][route.path][route.method.lower()]["responses"]
        assert str(answer.status) in responses, f"undocumented: {said}"
        response = responses[str(answer.status)]
        if answer.status >= 400:
            assert answer.code in self._codes(response), f"undocumented code: {said}"
            return
        if "content" not in response:
            assert answer.body is None, said
            return
        (content,) = response["content"].values()
        if content["schema"].get("format") == "binary":
            assert isinstance(answer.body, bytes), said
            return
        assert self.misfits(content["schema"], answer.body) == [], said
        if route.versioned:
            assert re.fullmatch(r'"[0-9]+"', answer.headers.get("ETag", "")), f"no ETag: {said}"

    def _codes(self, response: Any) -> list[str]:
        """The codes of a problem, in the document."""
        if "$ref" in response:
            response = self._components["responses"][response["$ref"].rpartition("/")[2]]
        schema = response["content"]["application/problem+json"]["schema"]
        codes: list[str] = schema["properties"]["code"]["enum"]
        return codes

    def misfits(self, schema: Mapping[str, Any], value: Any) -> list[str]:
        """Where `value` is not what the document says; a member that it does not name is a misfit too."""
        return _misfits(self._components, schema, value)


def misfits_of(document: Any, schema: Mapping[str, Any], value: Any) -> list[str]:
    """As `Caller.misfits`, for what no caller was answered."""
    return _misfits(_strict(document["components"]), schema, value)


def _misfits(components: Any, schema: Mapping[str, Any], value: Any) -> list[str]:
    whole = {**schema, "components": components}
    return [f"{error.json_path}: {error.message}" for error in OAS31Validator(whole).iter_errors(value)]


def _strict(components: Any) -> Any:
    """The components, none of which takes members beyond those it names."""
    closed = deepcopy(components)
    places = [closed["schemas"]]
    while places:
        place = places.pop()
        if isinstance(place, dict):
            if "properties" in place:
                place.setdefault("additionalProperties", False)
            places += place.values()
        elif isinstance(place, list):
            places += place
    return closed


@cache
def never(prefix: str) -> str:
    """An id that was never given out."""
    return prefix + "0" * 21
