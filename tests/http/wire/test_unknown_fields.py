"""Members of bodies and parameters that no operation knows (C2.3.1)."""

import random
import sys
from typing import Any

import orjson
import pytest
from pydantic import Field

from recado.domain.core.errors import Problem
from recado.http.api.models import ApiModel, QueryModel
from recado.http.api.route import Idempotency
from recado.http.bodies import field_errors
from recado.http.bodies.parsing import JsonBody, validate_body
from recado.http.bodies.unknown_fields import (
    HEADER,
    MOST,
    MOST_LOOKED_AT,
    is_strict,
    name_in,
    unknown_fields,
    unknown_parameters,
)
from recado.http.routes.audience.segment_models import SegmentCreate
from recado.http.routes.contacts.contact_models import ContactPatch
from recado.http.routes.messages.bulk_models import CreateBatch
from recado.http.routes.messages.message_models import CreateMessage
from recado.http.routes.templates.template_models import TemplateCreate
from recado.http.wire.reply import Reply

TEXT = {"numberId": "n", "to": "+5511987654321", "type": "text", "payload": {"text": {"body": "x"}}}


def told(model: Any, document: Any) -> list[tuple[str, str]]:
    return [(found.path, found.message) for found in unknown_fields(model, document)]


@pytest.mark.parametrize(
    ("model", "document", "found"),
    [
        (CreateMessage, TEXT, []),
        (CreateMessage, TEXT | {"id": "x", "organizationId": "x", "env": "live"}, []),
        (CreateMessage, TEXT | {"metadata": {"anything": 1}}, []),
        (CreateMessage, TEXT | {"sheduledAt": "x"}, [("/sheduledAt", "scheduledAt")]),
        (CreateMessage, TEXT | {"scheduled_at": "x"}, [("/scheduled_at", "scheduledAt")]),
        (CreateMessage, TEXT | {"xyzzy": 1}, [("/xyzzy", "")]),
        (CreateMessage, TEXT | {"payload": {"text": {"boby": "x", "body": "x"}}}, [("/payload/text/boby", "body")]),
        (
            CreateMessage,
            TEXT | {"payload": {"interactive": {"type": "button", "body": "x", "action": {"buttons": [{"titel": 1}]}}}},
            [("/payload/interactive/action/buttons/0/titel", "title")],
        ),
        (TemplateCreate, {"components": [{"type": "BODY", "paylod": {}}]}, [("/components/0/paylod", "payload")]),
        (TemplateCreate, {"components": [{"type": "BODY", "payload": {"free": 1}}]}, []),
        (ContactPatch, {"optIn": {"status": "granted", "sorce": "x"}}, [("/optIn/sorce", "source")]),
        (ContactPatch, {"attributes": {"of": "their own"}}, []),
        (CreateBatch, {"recipients": [{"to": "x"}, {"phone": "x"}]}, [("/recipients/1/phone", "")]),
        (
            SegmentCreate,
            {
                "filterTree": {
                    "kind": "and",
                    "children": [{"kind": "leaf", "filter": {"field": "tag", "operater": "is"}}],
                }
            },
            [("/filterTree/children/0/filter/operater", "operator")],
        ),
        (CreateMessage, ["no object"], []),
        (CreateMessage, TEXT | {"payload": "no object"}, []),
    ],
)
def test_what_is_unknown_is_named_with_what_was_meant(model: Any, document: Any, found: list[tuple[str, str]]) -> None:
    wanted = [
        (path, f"is unknown and was ignored: did you mean {meant}?" if meant else "is unknown and was ignored.")
        for path, meant in found
    ]
    assert told(model, document) == wanted


def test_what_is_said_is_bounded_whatever_a_body_holds() -> None:
    many = {f"{'x' * 3_000}{n}": n for n in range(10_000)}
    found = unknown_fields(CreateMessage, many)
    assert len(found) == MOST
    assert all(len(error.path) <= 200 for error in found)
    deep: Any = {}
    for _ in range(200):
        deep = {"payload": deep, "interactive": deep}
    assert len(unknown_fields(CreateMessage, TEXT | {"payload": deep})) <= MOST
    assert unknown_fields(CreateBatch, {"recipients": [{"to": "x"}] * 10_000}) == []


def test_names_of_their_own_models_are_known() -> None:
    rng = random.Random(5)
    for model in (CreateMessage, TemplateCreate, CreateBatch, ContactPatch):
        names = [info.alias for info in model.model_fields.values()]
        document = {name: rng.choice([None, 1, "x", [], {}]) for name in names}
        assert unknown_fields(model, document) == []


def test_parameters_are_compared_with_those_of_the_operation() -> None:
    found = unknown_parameters(["statuss", "limit", "statuss"], ["status", "limit"])
    assert [(error.path, error.message) for error in found] == [
        ("statuss", "is unknown and was ignored: did you mean status?")
    ]


@pytest.mark.parametrize(
    ("header", "strict"),
    [
        (None, False), ("handling=strict", True), ("respond-async, Handling = \"strict\"; x=1", True),
        ("handling=lenient", False), ("strict", False),
    ],
)  # fmt: skip
def test_strict_handling_is_asked_for_by_prefer(header: str | None, strict: bool) -> None:
    assert is_strict(header) is strict


class Inner(ApiModel):
    size: int | None = None


class Parcel(ApiModel):
    name: str
    inner: Inner = Field(default_factory=Inner)


class Filters(QueryModel):
    status: str | None = None


UNKNOWN = {"code": "UNKNOWN_FIELD", "path": "/inner/sise"}


def test_a_header_names_the_first_ten_only_and_a_body_all() -> None:
    found = unknown_parameters([f"odd{n}" for n in range(30)], ())
    read, written = Reply(200, {"items": []}), Reply(201, {"id": "a"})
    name_in(read, found, writes=False)
    name_in(written, found, writes=True)
    assert [each["path"] for each in orjson.loads(read.headers[HEADER])] == [f"odd{n}" for n in range(10)]
    assert isinstance(written.body, dict)
    assert len(written.body["warnings"]) == 30


DETAIL = "This field is unknown and was ignored: did you mean size?"


@pytest.fixture
async def parcels(serve: Any, thing: Any) -> Any:
    made: list[Any] = []

    async def create(call: Any) -> Reply:
        made.append(call.body)
        return Reply(201, {"name": call.body.name, "number": len(made)})

    async def empty(call: Any) -> Reply:
        return Reply(204)

    async def rendered(call: Any) -> Reply:
        return Reply(200, b'{"name":"x"}')

    async def listed(call: Any) -> Reply:
        return Reply(200, {"items": []})

    api = await serve(
        thing("POST", "/parcels", handler=create, body=Parcel, idempotency=Idempotency.ACCEPTED, query=Filters),
        thing("PUT", "/parcels", handler=rendered, body=Parcel),
        thing("PATCH", "/parcels", handler=empty, body=Parcel),
        thing("GET", "/parcels", handler=listed, query=Filters),
    )
    api.made = made
    return api


async def test_a_write_names_them_in_its_answer_and_a_replay_is_the_same(parcels: Any) -> None:
    body = {"name": "x", "inner": {"sise": 1}}
    answers = []
    for _ in range(2):
        async with parcels.client.post("/parcels?statuss=1", json=body, headers={"Idempotency-Key": "k"}) as answer:
            answers.append(await answer.read())
            assert answer.status == 201
            assert HEADER not in answer.headers
    assert answers[0] == answers[1]
    assert len(parcels.made) == 1
    found = orjson.loads(answers[0])["warnings"]
    assert found[0] == UNKNOWN | {"detail": DETAIL}
    assert found[1]["path"] == "statuss"


async def test_an_answer_that_is_rendered_already_names_them_too(parcels: Any) -> None:
    async with parcels.client.put("/parcels", json={"name": "x", "inner": {"sise": 1}}) as answer:
        assert await answer.json() == {"name": "x", "warnings": [UNKNOWN | {"detail": DETAIL}]}
    async with parcels.client.put("/parcels", json={"name": "x"}) as answer:
        assert await answer.json() == {"name": "x"}


async def test_a_read_says_in_its_header_what_was_probably_meant(parcels: Any) -> None:
    async with parcels.client.get("/parcels?statuss=1&odd=1") as answer:
        assert orjson.loads(answer.headers[HEADER]) == [
            {"code": "UNKNOWN_FIELD", "path": "statuss", "detail": DETAIL.replace("size", "status")},
            {"code": "UNKNOWN_FIELD", "path": "odd"},
        ]


async def test_a_read_an_empty_answer_and_a_refusal_name_them_in_a_header(parcels: Any) -> None:
    async with parcels.client.get("/parcels?state=%C3%A9") as answer:
        assert [(each["code"], each["path"]) for each in orjson.loads(answer.headers[HEADER])] == [
            ("UNKNOWN_FIELD", "state")
        ]
        assert await answer.json() == {"items": []}
    async with parcels.client.patch("/parcels", json={"name": "x", "inner": {"sise": 1}}) as answer:
        assert answer.status == 204
        assert orjson.loads(answer.headers[HEADER]) == [UNKNOWN | {"detail": DETAIL}]
    async with parcels.client.post("/parcels", json={"nam\u00e9\r\nX-Own: 1": "x"}) as answer:
        assert answer.status == 422
        assert "X-Own" not in answer.headers
        assert orjson.loads(answer.headers[HEADER])[0]["code"] == "UNKNOWN_FIELD"


async def test_strict_handling_refuses_them_and_does_nothing(parcels: Any) -> None:
    strict = {"Prefer": "handling=strict"}
    async with parcels.client.post("/parcels", json={"name": "x", "inner": {"sise": 1}}, headers=strict) as answer:
        told = await answer.json(content_type=None)
        assert (answer.status, told["code"], told["detail"]) == (
            422,
            "VALIDATION_ERROR",
            "1 unknown field: `errors` says which.",
        )
        assert told["errors"] == [UNKNOWN | {"message": "is unknown: did you mean size?"}]
    async with parcels.client.get("/parcels?statuss=1", headers=strict) as answer:
        assert answer.status == 422
    assert parcels.made == []
    async with parcels.client.post("/parcels", json={"name": "x", "id": "y"}, headers=strict) as answer:
        assert answer.status == 201


def test_an_item_in_which_all_is_known_takes_few_steps() -> None:
    document = {"recipients": [{"to": "+5511999990000", "templateVars": ["a"]}] * MOST_LOOKED_AT}
    unknown_fields(CreateBatch, document)
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        found = unknown_fields(CreateBatch, document)
    finally:
        sys.setprofile(None)
    assert found == []
    assert calls < 4 * MOST_LOOKED_AT


def test_a_name_as_long_as_a_body_is_compared_with_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    bare = field_errors._bare
    monkeypatch.setattr(field_errors, "_bare", lambda name: compared.append(name) or bare(name))
    document = {"İ" * 30_000: 1}  # of which each small letter is two
    assert unknown_fields(TemplateCreate, document)
    with pytest.raises(Problem):
        validate_body(TemplateCreate, JsonBody(document), 422)
    assert compared
    assert max(map(len, compared)) < 100
