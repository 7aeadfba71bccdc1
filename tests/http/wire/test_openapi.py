"""The document says what the dispatcher does."""

import re
from enum import StrEnum
from typing import Annotated, Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import Field, PlainSerializer

from recado.http.api.models import ApiModel, PatchModel, QueryInt, QueryModel, Timestamp
from recado.http.api.paging import CountedPage
from recado.http.api.route import Access, Idempotency
from recado.http.openapi.document import document
from recado.http.openapi.written_examples import Example
from recado.http.routes.access.organization_models import AdministeredOrganizationOut, OrganizationAdminPatch
from recado.http.routes.audience.segment_models import SegmentCreate, SegmentOut


class Colour(StrEnum):
    RED = "red"


class Part(ApiModel):
    part_name: str
    size: int = 1


class Thing(ApiModel):
    display_name: str = Field(max_length=5)
    colour: Colour = Colour.RED
    parts: list[Part] = Field(default_factory=list)
    made_at: Timestamp | None = None
    # Written in another form than read, so that the model has two components.
    weight: Annotated[int, PlainSerializer(str, return_type=str)] = 1


class ThingPage(CountedPage[Thing]):
    """A page of things."""


class ThingChange(PatchModel):
    display_name: str = ""


class Filter(QueryModel):
    limit: QueryInt = Field(default=50, ge=1, le=200, description="How many.")
    colour: Colour | None = None
    made_by: list[str] | None = None
    since: Timestamp


def described(*routes: Any) -> dict[str, Any]:
    return document(routes, base_url="https://api.example.com/", version="1.2.3", tags={"Things": "All about things."})


def all_routes(thing: Any) -> list[Any]:
    one = {"path_ids": {"id": "thg_"}}
    public = {"access": Access.PUBLIC, "scope": None, "rate_class": "public"}
    callback = {"access": Access.CALLBACK, "scope": None, "rate_class": ""}
    create = {"creates": True, "versioned": True, "idempotency": Idempotency.ACCEPTED}
    send = {"idempotency": Idempotency.REQUIRED, "session_only": True, "errors": ("DEPENDENCY_FAILED",)}
    return [
        thing(query=Filter, responses={200: ThingPage}),
        thing("POST", body=Thing, responses={201: Thing}, **create),
        thing("GET", "/things/{id}", responses={200: Thing}, versioned=True, **one),
        thing("PATCH", "/things/{id}", body=ThingChange, responses={200: Thing}, versioned=True, **one),
        thing("DELETE", "/things/{id}", responses={204: None}, errors=("INVALID_STATE", "CONFLICT"), **one),
        thing("POST", "/things/{id}/send", body=Part, responses={202: None}, **send),
        thing("POST", "/callbacks/{name}", raw_body=True, responses={200: Part}, **callback),
        thing("GET", "/admin/things", access=Access.ADMIN, scope=None, responses={200: ThingPage}),
        thing("GET", "/l/{code}", responses={200: None}, response_types={200: "text/html"}, **public),
        thing("GET", "/page", documented=False),
    ]


def test_the_document_is_valid(thing: Any) -> None:
    found = described(*all_routes(thing))
    OpenAPIV31SpecValidator(found).validate()
    assert found["openapi"].startswith("3.1.")
    assert found["servers"] == [{"url": "https://api.example.com"}]
    assert found["tags"] == [{"name": "Things", "description": "All about things."}]
    assert "/page" not in found["paths"]


def test_every_operation_tells_each_problem_it_can_answer(thing: Any) -> None:
    paths = described(*all_routes(thing))["paths"]

    def problems(method: str, path: str) -> set[int]:
        return {int(status) for status in paths[path][method]["responses"] if int(status) >= 400}

    always = {400, 401, 403, 422, 429, 500, 503}
    body = {408, 413, 415}
    assert problems("get", "/things") == always
    assert problems("post", "/things") == always | body | {409, 412}
    assert problems("get", "/things/{id}") == always | {404}
    assert problems("patch", "/things/{id}") == always | body | {404, 412}
    assert problems("delete", "/things/{id}") == always | {404, 409}
    assert problems("post", "/things/{id}/send") == always | body | {404, 502}
    assert problems("post", "/callbacks/{name}") == {400, 404, 408, 413, 415, 429, 500, 503}
    assert problems("get", "/admin/things") == {400, 401, 404, 422, 429, 500, 503}
    assert problems("get", "/l/{code}") == {400, 404, 429, 500}
    assert "304" in paths["/things/{id}"]["get"]["responses"]


def test_every_operation_tells_the_codes_of_each_problem(thing: Any) -> None:
    found = described(*all_routes(thing))

    def codes(method: str, path: str, status: int) -> list[str]:
        response = found["paths"][path][method]["responses"][str(status)]
        if "$ref" in response:
            response = found["components"]["responses"][response["$ref"].rpartition("/")[2]]
        schema = response["content"]["application/problem+json"]["schema"]
        assert schema["allOf"] == [{"$ref": "#/components/schemas/Problem"}]
        told: list[str] = schema["properties"]["code"]["enum"]
        assert re.findall(r"^- `(\w+)`: .+\.$", response["description"], re.MULTILINE) == told
        return told

    keys = ["API_KEY_EXPIRED", "API_KEY_REVOKED", "SESSION_EXPIRED"]
    assert codes("get", "/things", 401) == ["UNAUTHORIZED", *keys]
    assert codes("get", "/things", 403) == ["SCOPE_REQUIRED", "IP_NOT_ALLOWED"]
    assert codes("get", "/things", 400) == ["BAD_REQUEST", "INVALID_PARAMETER"]
    assert codes("delete", "/things/{id}", 403) == ["SCOPE_REQUIRED", "ORGANIZATION_SUSPENDED", "IP_NOT_ALLOWED"]
    assert codes("delete", "/things/{id}", 409) == ["CONFLICT", "INVALID_STATE"]
    assert codes("post", "/things", 400) == ["BAD_REQUEST", "MALFORMED_JSON", "IDEMPOTENCY_KEY_INVALID"]
    assert codes("post", "/things", 422) == ["VALIDATION_ERROR", "INVALID_CHARACTER", "IDEMPOTENCY_KEY_REUSED"]
    assert codes("post", "/things/{id}/send", 502) == ["DEPENDENCY_FAILED"]
    assert codes("patch", "/things/{id}", 408) == ["BAD_REQUEST"]


async def test_what_stands_in_the_head_of_an_answer_is_described(serve: Any, thing: Any) -> None:
    routes = (
        thing(query=Filter, responses={200: ThingPage}),
        thing("POST", body=Thing, responses={200: Thing}, versioned=True, idempotency=Idempotency.ACCEPTED),
        thing("GET", "/l/{code}", access=Access.PUBLIC, scope=None, rate_class="public", responses={200: Thing}),
    )
    found = described(*routes)
    api = await serve(*routes)
    limits, always = {"ratelimit-policy", "ratelimit"}, {"x-request-id", "cache-control"}

    async def told(method: str, path: str, template: str = "", **request: Any) -> tuple[int, set[str]]:
        """Status and headers of the answer, which the document has, too."""
        async with api.client.request(method, path, **request) as answer:
            headers = {name.lower() for name in answer.headers} - {"content-length", "content-type", "date"}
        response = found["paths"][template or path][method.lower()]["responses"][str(answer.status)]
        if "$ref" in response:
            response = found["components"]["responses"][response["$ref"].rpartition("/")[2]]
        assert headers <= {name.lower() for name in response["headers"]}
        assert set(response["headers"]) <= set(found["components"]["headers"])
        return answer.status, headers

    key = {"Idempotency-Key": "1"}
    assert await told("GET", "/things") == (400, always | limits)
    assert await told("GET", "/things", headers={"Authorization": "Bearer bad"}) == (401, always | {"www-authenticate"})
    assert await told("POST", "/things", json={"displayName": 5}) == (422, always | limits)
    assert await told("POST", "/things", json={"displayName": ""}, headers=key) == (200, always | limits)
    assert await told("POST", "/things", json={"displayName": ""}, headers=key) == (
        200, always | limits | {"idempotency-replayed"},
    )  # fmt: skip
    (held,) = api.idempotency.rows
    api.idempotency.rows[held] = (api.idempotency.rows[held][0], None)
    under_way = await told("POST", "/things", json={"displayName": ""}, headers=key)
    assert under_way == (409, always | limits | {"retry-after"})
    assert await told("GET", "/l/x", "/l/{code}") == (200, always)


def test_problems_that_operations_share_are_described_once(thing: Any) -> None:
    def deleting(path: str, *codes: str) -> Any:
        return thing("DELETE", path, responses={204: None}, errors=codes)

    found = described(
        deleting("/a", "INVALID_STATE"), deleting("/b", "INVALID_STATE"), deleting("/c", "INVALID_STATE", "CONFLICT")
    )

    conflicts = [found["paths"][path]["delete"]["responses"]["409"] for path in ("/a", "/b", "/c")]
    assert conflicts[0] == conflicts[1] == {"$ref": "#/components/responses/Problem409"}
    assert conflicts[2] == {"$ref": "#/components/responses/DeleteC409"}
    responses = found["components"]["responses"]
    assert "`CONFLICT`" in responses["DeleteC409"]["description"]
    assert "`CONFLICT`" not in responses["Problem409"]["description"]
    names = {"Problem400", "Problem401", "Problem403", "Problem409", "Problem422", "Problem429", "Problem500"}
    assert set(responses) == names | {"Problem503", "DeleteC409"}


def test_parameters_are_described_with_their_bounds(thing: Any) -> None:
    found = described(*all_routes(thing))
    listing = found["paths"]["/things"]["get"]["parameters"]
    parameters = {parameter["name"]: parameter for parameter in listing if "name" in parameter}
    assert parameters["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}
    assert parameters["limit"]["description"] == "How many."
    assert parameters["colour"]["schema"] == {"$ref": "#/components/schemas/Colour"}
    assert parameters["madeBy"]["schema"] == {"type": "array", "items": {"type": "string"}}
    assert (parameters["since"].get("required"), parameters["limit"].get("required")) == (True, None)
    (of_path, if_match, _) = found["paths"]["/things/{id}"]["patch"]["parameters"]
    assert of_path["schema"] == {"type": "string", "pattern": "^thg_[0-9A-Za-z]{21}$"}
    shared = found["components"]["parameters"]
    assert if_match == {"$ref": "#/components/parameters/If-Match"}
    assert (shared["If-Match"]["name"], shared["If-Match"]["in"]) == ("If-Match", "header")
    of_post = [parameter["$ref"] for parameter in found["paths"]["/things"]["post"]["parameters"]]
    assert of_post == [f"#/components/parameters/{name}" for name in ("Idempotency-Key", "Prefer")]
    (of_path, key, _) = found["paths"]["/things/{id}/send"]["post"]["parameters"]
    assert (key["name"], key["required"]) == ("Idempotency-Key", True)


def test_credentials_and_scopes_are_told(thing: Any) -> None:
    found = described(*all_routes(thing))
    read = found["paths"]["/things"]["get"]
    assert (read["security"], read["x-required-scope"]) == ([{"bearer": []}], "things:read")
    assert "`things:read`" in read["description"]
    assert found["paths"]["/things/{id}/send"]["post"]["x-session-only"] is True
    assert found["paths"]["/admin/things"]["get"]["security"] == [{"administrator": []}]
    assert found["paths"]["/l/{code}"]["get"]["security"] == []
    assert set(found["components"]["securitySchemes"]) == {"bearer", "administrator"}


def test_components_have_plain_names_and_every_reference_leads_somewhere(thing: Any) -> None:
    found = described(*all_routes(thing))
    names = set(found["components"]["schemas"])
    assert names == {
        "Problem",
        "UnknownFields",
        "Colour",
        "Part",
        "ThingInput",
        "ThingOutput",
        "ThingPage",
        "ThingChange",
    }
    for reference in re.findall(r"'\$ref': '#/([^']+)'", repr(found)):
        place: Any = found
        for part in reference.split("/"):
            place = place[part]
    output = found["components"]["schemas"]["ThingOutput"]
    assert set(output["properties"]) == {"displayName", "colour", "parts", "madeAt", "weight", "warnings"}
    assert "title" not in output["properties"]["displayName"]


def test_no_default_is_null_and_answers_of_writes_may_carry_warnings(thing: Any) -> None:
    found = described(*all_routes(thing))
    assert "'default': None" not in repr(found)
    assert found["components"]["schemas"]["ThingOutput"]["properties"]["warnings"] == {
        "$ref": "#/components/schemas/UnknownFields"
    }


def test_an_optional_field_of_an_answer_is_never_null_and_no_default_makes_a_field_required(thing: Any) -> None:
    schemas = described(*all_routes(thing))["components"]["schemas"]
    assert schemas["ThingOutput"]["properties"]["madeAt"] == {"type": "string", "format": "date-time"}
    assert {"type": "null"} in schemas["ThingInput"]["properties"]["madeAt"]["anyOf"]
    given, answered = (schemas[name]["properties"]["colour"] for name in ("ThingInput", "ThingOutput"))
    assert given == {"$ref": "#/components/schemas/Colour", "description": 'Default: `"red"`.'}
    assert answered == {"$ref": "#/components/schemas/Colour"}


def test_a_recursive_shape_that_is_read_and_written_is_one_component(thing: Any) -> None:
    both = thing("POST", "/segments", body=SegmentCreate, responses={201: SegmentOut})
    found = described(both)["components"]["schemas"]
    assert {name for name in found if name.startswith("Filter")} == {
        "Filter", "FilterTree", "FilterLeaf", "FilterGroup", "FilterNot",
    }  # fmt: skip
    assert found["FilterNot"]["properties"]["child"] == {"$ref": "#/components/schemas/FilterTree"}


def test_what_a_request_holds_too_much_of_is_told_in_a_header_and_refused_where_that_is_asked_for(thing: Any) -> None:
    paths = described(*all_routes(thing))["paths"]
    named = {
        (path, method)
        for path, methods in paths.items()
        for method, operation in methods.items()
        for status, response in operation["responses"].items()
        if status < "400" and "X-Recado-Warnings" in response["headers"]
    }
    # Where an answer has an object of a write, that one has `warnings`.
    assert named == {
        ("/things", "get"),
        ("/things/{id}", "get"),
        ("/things/{id}", "delete"),
        ("/things/{id}/send", "post"),
        ("/admin/things", "get"),
    }
    preferred = {
        (path, method)
        for path, methods in paths.items()
        for method, operation in methods.items()
        if {"$ref": "#/components/parameters/Prefer"} in operation.get("parameters", ())
    }
    assert preferred == named | {("/things", "post"), ("/things/{id}", "patch")}


def test_problems_of_requests_that_were_read_may_name_what_is_unknown(thing: Any) -> None:
    found = described(*all_routes(thing))
    told = {
        int(re.findall(r"\d{3}", name)[0]): "X-Recado-Warnings" in response["headers"]
        for name, response in found["components"]["responses"].items()
    }
    assert {status for status, named in told.items() if named} >= {400, 404, 422}
    assert not told[401]
    assert found["components"]["headers"]["X-Recado-Warnings"]["schema"]["type"] == "string"


def test_two_models_do_not_become_one_component(thing: Any) -> None:
    other = type("_Part", (ApiModel,), {"__annotations__": {"colour": Colour}})
    with pytest.raises(ValueError, match="one component"):
        described(thing(responses={200: Part}), thing("POST", responses={201: other}))


def test_where_no_example_is_written_one_is_made_of_what_is_known_of_the_same_thing(thing: Any) -> None:
    written = {"makeThing": Example(response={"displayName": "blue", "weight": "2"})}
    routes = (
        thing(responses={200: ThingPage}),
        thing("POST", body=Thing, responses={201: Thing}, operation_id="makeThing"),
        thing("POST", "/parts", body=Part, responses={201: Part}),
    )
    paths = document(routes, base_url="https://api.example.com", version="1.2.3", examples=written)["paths"]

    def shown(path: str, method: str, status: str) -> Any:
        return paths[path][method]["responses"][status]["content"]["application/json"]["example"]

    assert shown("/things", "post", "201") == written["makeThing"].response
    assert shown("/things", "get", "200")["items"] == [written["makeThing"].response]
    asked = paths["/things"]["post"]["requestBody"]["content"]["application/json"]["example"]
    assert asked == {"displayName": "Ana", "colour": "red", "parts": [{"partName": "welcome", "size": 1}]}
    assert shown("/parts", "post", "201") == {"partName": "welcome"}


def test_agreed_prices_of_an_answer_are_never_null(thing: Any) -> None:
    given = thing("PATCH", "/given", body=OrganizationAdminPatch, responses={200: AdministeredOrganizationOut})
    schemas = described(given)["components"]["schemas"]
    assert schemas["PriceOverrideOut"]["properties"]["internationalCoins"] == {"type": "integer"}
    assert schemas["PriceOverrideOut"]["properties"]["coins"]["type"] == "array"
    assert {"type": "null"} in schemas["PriceOverride"]["properties"]["coins"]["anyOf"]
