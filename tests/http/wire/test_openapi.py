"""The document says what the dispatcher does."""

import re
from enum import StrEnum
from typing import Annotated, Any

from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import Field, PlainSerializer

from recado.http.models import ApiModel, PatchModel, QueryInt, QueryModel, Timestamp
from recado.http.openapi import document
from recado.http.paging import Page
from recado.http.route import Access, Idempotency


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


class ThingPage(Page[Thing]):
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
    send = {"idempotency": Idempotency.REQUIRED, "session_only": True, "errors": (502,)}
    return [
        thing(query=Filter, responses={200: ThingPage}),
        thing("POST", body=Thing, responses={201: Thing}, **create),
        thing("GET", "/things/{id}", responses={200: Thing}, versioned=True, **one),
        thing("PATCH", "/things/{id}", body=ThingChange, responses={200: Thing}, versioned=True, **one),
        thing("DELETE", "/things/{id}", responses={204: None}, errors=(409,), **one),
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

    always = {400, 401, 403, 429, 500, 503}
    body = {408, 413, 415, 422}
    assert problems("get", "/things") == always
    assert problems("post", "/things") == always | body | {409, 412}
    assert problems("get", "/things/{id}") == always | {404}
    assert problems("patch", "/things/{id}") == always | body | {404, 412}
    assert problems("delete", "/things/{id}") == always | {404, 409}
    assert problems("post", "/things/{id}/send") == always | body | {404, 409, 502}
    assert problems("post", "/callbacks/{name}") == {400, 404, 408, 413, 429, 500, 503}
    assert problems("get", "/admin/things") == {400, 401, 429, 500, 503}
    assert problems("get", "/l/{code}") == {400, 404, 429, 500}
    assert "304" in paths["/things/{id}"]["get"]["responses"]


def test_parameters_are_described_with_their_bounds(thing: Any) -> None:
    found = described(*all_routes(thing))
    parameters = {parameter["name"]: parameter for parameter in found["paths"]["/things"]["get"]["parameters"]}
    assert parameters["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 200, "default": 50}
    assert parameters["limit"]["description"] == "How many."
    assert parameters["colour"]["schema"] == {"$ref": "#/components/schemas/Colour"}
    assert parameters["madeBy"]["schema"] == {"type": "array", "items": {"type": "string"}}
    assert (parameters["since"]["required"], parameters["limit"]["required"]) == (True, False)
    (of_path, if_match) = found["paths"]["/things/{id}"]["patch"]["parameters"]
    assert of_path["schema"] == {"type": "string", "pattern": "^thg_[0-9A-Za-z]{21}$"}
    assert (if_match["name"], if_match["in"]) == ("If-Match", "header")
    assert [parameter["name"] for parameter in found["paths"]["/things"]["post"]["parameters"]] == ["Idempotency-Key"]
    (of_path, key) = found["paths"]["/things/{id}/send"]["post"]["parameters"]
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
    assert names == {"Problem", "Colour", "Part", "ThingInput", "ThingOutput", "ThingPage", "ThingChange"}
    for reference in re.findall(r"'\$ref': '#/([^']+)'", repr(found)):
        place: Any = found
        for part in reference.split("/"):
            place = place[part]
    output = found["components"]["schemas"]["ThingOutput"]
    assert set(output["properties"]) == {"displayName", "colour", "parts", "madeAt", "weight"}
    assert "title" not in output["properties"]["displayName"]
