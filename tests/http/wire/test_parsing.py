"""What bodies may hold, and what is said about those that may not."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Literal

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from recado.domain.core.errors import Problem
from recado.http.api.models import ApiModel, Timestamp, most_members, one_of
from recado.http.bodies.field_errors import MOST_HINTS
from recado.http.bodies.parsing import JsonBody, parse_json, refuse_nul, validate_body


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Text(ApiModel):
    type: Literal["text"]
    text: str = Field(max_length=3)


class Picture(ApiModel):
    type: Literal["picture"]
    media_id: str


def refuse_phone(value: str) -> str:
    if not value.startswith("+"):
        raise PydanticCustomError("phone_invalid", "must be an international number")
    return value


class Body(ApiModel):
    display_name: str = Field(default="x", min_length=1, max_length=5)
    size: int = 1
    weight: float = 1.0
    flag: bool = False
    at: Timestamp | None = None
    colour: Colour = Colour.RED
    tags: list[str] = Field(default_factory=list)
    content: Annotated[Text | Picture, Field(discriminator="type")] | None = None
    either: Text | int | None = None
    phone: Annotated[str, AfterValidator(refuse_phone)] = "+1"
    anything: Any = None
    names: list[Annotated[str, one_of(["message.sent", "message.read"], elsewhere=["message.made"])]] | None = None
    few: Annotated[dict[str, int], most_members(2)] | None = None
    values: dict[str, Annotated[str, Field(max_length=3)] | int | float | bool] | None = None


def read(raw: bytes) -> Body:
    body = validate_body(Body, parse_json(raw), 422)
    assert isinstance(body, Body)
    return body


def refusal(raw: bytes, status: int = 422) -> Problem:
    with pytest.raises(Problem) as caught:
        validate_body(Body, parse_json(raw), status)
    return caught.value


@pytest.mark.parametrize("values", [b"[]," * 500_000, b"{}," * 500_000, b"1," * 4_000_001])
def test_a_large_body_of_tiny_values_is_refused_before_it_fills_the_memory(values: bytes) -> None:
    problem = refusal(b"[" + values + b"1]")
    assert (problem.status, problem.code, problem.detail) == (
        400, "MALFORMED_JSON", "The body holds too many values.",
    )  # fmt: skip


def test_a_large_body_of_ordinary_values_is_read() -> None:
    raw = b"[" + b'"+5511987654321",' * 1_000_000 + b"[]]"
    assert len(parse_json(raw).document) == 1_000_001


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" ",
        b"{",
        b"{'a': 1}",
        b'{"a": 1,}',
        b"{} x",
        b"nul",
        b"\xff",
        b'{"a": "\xff"}',
        b'"\\ud800"',
        b'"\\udc00"',
        b"NaN",
        b'{"size": NaN}',
        b'{"weight": Infinity}',
        b'{"weight": -Infinity}',
        b'{"weight": 1e400}',
        b'{"weight": -1e999999999}',
        b"01",
        b"+1",
        b"\xef\xbb\xbf{}",
        b'"\x00"',
        b'{"a": "\n"}',
        b"[" * 2000,
        b"[" * 2000 + b"]" * 2000,
        b"[" * 300 + b"]" * 300,
        b'{"a":' * 500 + b"1" + b"}" * 500,
        b"[" * 500_000,
        "{}".encode("utf-16"),
        b'{"a": "\xed\xa0\x80"}',
    ],
)
def test_what_is_no_json_is_malformed(raw: bytes) -> None:
    with pytest.raises(Problem) as caught:
        parse_json(raw)
    assert (caught.value.code, caught.value.status) == ("MALFORMED_JSON", 400)


def outcome(work: Callable[[], Any]) -> Any:
    """What `work` returns, or the problem that it raises."""
    try:
        return work()
    except Problem as problem:
        return problem


@given(st.binary(max_size=50))
def test_any_bytes_are_parsed_or_refused(raw: bytes) -> None:
    found = outcome(lambda: parse_json(raw))
    if isinstance(found, Problem):
        assert found.status == 400
    else:
        assert orjson.loads(found.canonical) == found.document


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(_JSON)
def test_the_order_of_members_and_spaces_do_not_change_the_canonical_form(document: Any) -> None:
    one = parse_json(orjson.dumps(document))
    other = parse_json(orjson.dumps(_reversed(document), option=orjson.OPT_INDENT_2))
    assert one.canonical == other.canonical


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _reversed(member) for name, member in reversed(value.items())}
    return [_reversed(member) for member in value] if isinstance(value, list) else value


@given(st.dictionaries(st.sampled_from(["displayName", "size", "weight", "flag", "tags", "content", "either"]), _JSON))
def test_any_document_is_taken_or_refused_with_pointers_into_it(document: dict[str, Any]) -> None:
    found = outcome(lambda: read(orjson.dumps(document)))
    if isinstance(found, Problem):
        assert found.status == 422
        assert found.errors
        for error in found.errors:
            assert error.path == "" or error.path.split("/")[1] in document


@pytest.mark.parametrize(
    ("raw", "paths"),
    [
        (b'{"anything": 18446744073709551616}', ["/anything"]),
        (b'{"anything": -9223372036854775809}', ["/anything"]),
        (b'{"anything": {"a/b": [1, %d]}, "size": 1}' % 10**30, ["/anything/a~1b/1"]),
        (b'{"size": %s}' % (b"1" * 300), ["/size"]),
        (b'{"anything": [%s]}' % b",".join([b"9" * 30] * 60), [f"/anything/{place}" for place in range(50)]),
        (b'{"anything": ["%s", %s]}' % (b"x" * 2**20, b"9" * 30), ["/anything/1"]),
        (b'{"anything": [%s%s]}' % (b"1000," * 250_001, b"9" * 30), [""]),
    ],
)
def test_a_whole_number_that_would_come_back_as_another_is_refused_where_it_stands(
    raw: bytes, paths: list[str]
) -> None:
    refused = refusal(raw)
    assert (refused.code, refused.status) == ("VALIDATION_ERROR", 422)
    assert [(error.path, error.code) for error in refused.errors] == [(path, "OUT_OF_RANGE") for path in paths]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"18446744073709551615", 2**64 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b"1e300", 1e300),
        (b"12345678901234567890123e1", 12345678901234567890123e1),
        (b"12345678901234567890123.5", 12345678901234567890123.5),
        (b"0.12345678901234567890123", 0.12345678901234567890123),
        (b"1e-00000000000000000000001", 0.1),
        (b'"\\\\\\"12345678901234567890123"', '\\"12345678901234567890123'),
    ],
)
def test_other_numbers_and_digits_in_texts_are_taken_as_they_are(raw: bytes, expected: Any) -> None:
    assert read(b'{"anything": %s}' % raw).anything == expected


def test_a_long_number_in_a_field_that_is_ignored_is_ignored_too() -> None:
    assert read(b'{"size": 1, "other": {"a": 12345678901234567890123}}').size == 1


def test_a_long_number_in_a_large_body_is_told_with_its_place() -> None:
    filler = b"x" * 1_100_000
    (error,) = refusal(b'{"filler": "%s", "anything": {"a": [1, 12345678901234567890123]}}' % filler).errors
    assert (error.path, error.code) == ("/anything/a/1", "OUT_OF_RANGE")
    assert read(b'{"filler": [12345678901234567890123, "%s"]}' % filler).anything is None


def test_names_are_camel_case_unknown_ones_ignored_and_texts_trimmed() -> None:
    body = read('{"displayName": " \\u00a0äöü\\n", "id": 1, "organizationId": "x", "env": "live"}'.encode())
    assert body.display_name == "äöü"


def test_lengths_count_code_points_after_trimming() -> None:
    assert read('{"displayName": " 🦜🦜🦜🦜🦜 "}'.encode()).display_name == "🦜" * 5
    (error,) = refusal('{"displayName": "🦜🦜🦜🦜🦜🦜"}'.encode()).errors
    assert (error.path, error.code) == ("/displayName", "TOO_LONG")
    (error,) = refusal(b'{"displayName": "  "}').errors
    assert (error.path, error.code) == ("/displayName", "TOO_SHORT")


@pytest.mark.parametrize(
    ("raw", "path", "code"),
    [
        (b'{"size": "1"}', "/size", "WRONG_TYPE"),
        (b'{"size": 1.5}', "/size", "WRONG_TYPE"),
        (b'{"size": true}', "/size", "WRONG_TYPE"),
        (b'{"size": null}', "/size", "WRONG_TYPE"),
        (b'{"flag": 1}', "/flag", "WRONG_TYPE"),
        (b'{"flag": "true"}', "/flag", "WRONG_TYPE"),
        (b'{"displayName": 5}', "/displayName", "WRONG_TYPE"),
        (b'{"tags": "a"}', "/tags", "WRONG_TYPE"),
        (b'{"tags": ["a", 5]}', "/tags/1", "WRONG_TYPE"),
        (b'{"colour": "green"}', "/colour", "NOT_ALLOWED"),
        (b'{"at": "2026-01-01T00:00:00"}', "/at", "WRONG_TYPE"),
        (b'{"at": 1700000000}', "/at", "WRONG_TYPE"),
        (b'{"at": "2026-02-30T00:00:00Z"}', "/at", "WRONG_TYPE"),
        (b'{"content": {}}', "/content", "REQUIRED"),
        (b'{"content": {"type": "video"}}', "/content", "NOT_ALLOWED"),
        (b'{"content": {"type": "text"}}', "/content/text", "REQUIRED"),
        (b'{"content": {"type": "text", "text": "abcd"}}', "/content/text", "TOO_LONG"),
        (b'{"content": {"type": "picture"}}', "/content/mediaId", "REQUIRED"),
        (b"[]", "", "WRONG_TYPE"),
        (b'"text"', "", "WRONG_TYPE"),
        (b"null", "", "WRONG_TYPE"),
    ],
)
def test_each_bad_field_is_named_by_its_pointer(raw: bytes, path: str, code: str) -> None:
    problem = refusal(raw)
    assert (problem.code, problem.kind) == ("VALIDATION_ERROR", "VALIDATION_ERROR")
    assert [(error.path, error.code) for error in problem.errors] == [(path, code)]


def test_the_branches_of_a_union_are_no_part_of_a_pointer() -> None:
    paths = {error.path for error in refusal(b'{"either": {"type": "text", "text": 5}}').errors}
    assert paths == {"/either/text", "/either"}


def test_names_are_escaped_in_pointers() -> None:
    (error,) = refusal(b'{"anything": {"a/b~c": ["\\u0000"]}}').errors
    assert error.path == "/anything/a~1b~0c/0"


def test_no_message_repeats_what_was_sent() -> None:
    raw = b"""{"displayName": "Maria-da-Silva", "size": "Maria", "colour": "Maria", "content": {"type": "Maria"},
              "either": "Maria", "flag": "Maria", "at": "Maria", "phone": "Maria", "weight": "Maria"}"""
    problem = refusal(raw)
    assert len(problem.errors) >= 9
    assert "Maria" not in problem.detail + repr(problem.errors)


def test_at_most_fifty_errors_are_told() -> None:
    problem = refusal(orjson.dumps({"tags": list(range(80))}))
    assert [error.path for error in problem.errors] == [f"/tags/{n}" for n in range(50)]


class Many(ApiModel):
    """Long lists, of which validation itself tells the first bad item only."""

    names: list[str] = Field(default_factory=list, fail_fast=True)
    things: list[Text] = Field(default_factory=list, fail_fast=True)


def many_refused(document: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(Problem) as caught:
        validate_body(Many, parse_json(orjson.dumps(document)), 422)
    return [(error.path, error.code) for error in caught.value.errors]


def test_of_a_long_list_each_bad_item_is_told_until_there_are_fifty() -> None:
    assert many_refused({"names": list(range(30_000))}) == [(f"/names/{n}", "WRONG_TYPE") for n in range(50)]
    names: list[Any] = ["a"] * 10_000
    for place in (0, 1, 999, 1_000, 2_500, 9_999):
        names[place] = 5
    assert [path for path, _ in many_refused({"names": names})] == [
        "/names/0", "/names/1", "/names/999", "/names/1000", "/names/2500", "/names/9999",
    ]  # fmt: skip


def test_what_is_wrong_inside_later_items_is_told_with_its_pointer() -> None:
    good = {"type": "text", "text": "a"}
    found = many_refused({"names": ["a", 5], "things": [good, {}, good, {"type": "text", "text": "abcd"}]})
    assert found == [
        ("/names/1", "WRONG_TYPE"),
        ("/things/1/type", "REQUIRED"),
        ("/things/1/text", "REQUIRED"),
        ("/things/3/text", "TOO_LONG"),
    ]


def test_no_more_than_fifty_places_of_nul_are_looked_for() -> None:
    body = parse_json(rb'{"names": [' + rb'"\u0000",' * 200_000 + b'"a"]}')
    looked: list[str] = []

    class Counted(list[Any]):
        def __iter__(self) -> Any:
            for item in super().__iter__():
                looked.append(item)
                yield item

    with pytest.raises(Problem) as caught:
        refuse_nul({"names": Counted(body.document["names"])})
    assert [error.path for error in caught.value.errors] == [f"/names/{n}" for n in range(50)]
    assert len(looked) == 50


def test_a_body_is_as_deep_as_validation_can_follow() -> None:
    assert read(b'{"anything":' + b"[" * 199 + b"]" * 199 + b"}").anything
    with pytest.raises(Problem) as caught:
        parse_json(b'{"anything":' + b"[" * 200 + b"]" * 200 + b"}")
    assert (caught.value.code, caught.value.status) == ("MALFORMED_JSON", 400)
    assert "200" in caught.value.detail


def test_nul_is_found_at_any_depth_that_a_body_has() -> None:
    body = parse_json(rb'{"a":' * 200 + rb'"\u0000"' + b"}" * 200)
    with pytest.raises(Problem) as caught:
        refuse_nul(body.document)
    assert [error.path for error in caught.value.errors] == ["/a" * 200]


@pytest.mark.parametrize("separator", [b",", b"[", b"{"])
def test_an_operation_that_takes_few_values_refuses_many(separator: bytes) -> None:
    raw = b'["' + separator * 70_000 + b'"]'
    assert len(parse_json(raw).document) == 1
    with pytest.raises(Problem) as caught:
        parse_json(raw, 50_000)
    assert caught.value.detail == "The body holds too many values."


def test_a_rule_with_a_code_of_its_own_names_the_problem_when_nothing_else_is_wrong() -> None:
    assert refusal(b'{"phone": "5"}').code == "PHONE_INVALID"
    assert refusal(b'{"phone": "5", "size": "x"}').code == "VALIDATION_ERROR"
    assert (refusal(b'{"phone": "5"}', 400).code, refusal(b'{"phone": "5"}', 400).status) == ("BAD_REQUEST", 400)


def test_the_first_wrong_names_are_answered_with_what_was_meant() -> None:
    wrong = ["message.made", *(f"message.sen{n}" for n in range(MOST_HINTS + 2))]
    problem = refusal(orjson.dumps({"names": wrong}))
    listed, meant = "must be one of message.sent, message.read", "is not known: did you mean message.sent?"
    assert [error.message for error in problem.errors] == [listed, *[meant] * MOST_HINTS, listed, listed]
    assert {error.code for error in problem.errors} == {"NOT_ALLOWED"}


def test_an_object_of_too_many_members_is_refused_with_how_many_it_may_have() -> None:
    (error,) = refusal(b'{"few": {"a": 1, "b": 1, "c": 1}}').errors
    assert (error.path, error.code, error.message) == ("/few", "TOO_MANY", "must have at most 2 members")


@pytest.mark.parametrize(
    ("raw", "paths"),
    [
        (rb'{"displayName": "a\u0000b"}', ["/displayName"]),
        (rb'{"anything": {"deep": [1, "\u0000"]}, "unknown": "\u0000"}', ["/anything/deep/1", "/unknown"]),
        (rb'{"anything": {"na\u0000me": 1}}', ["/anything"]),
    ],
)
def test_the_character_nul_is_refused_wherever_it_stands(raw: bytes, paths: list[str]) -> None:
    problem = refusal(raw)
    assert (problem.code, problem.status) == ("INVALID_CHARACTER", 422)
    assert [error.path for error in problem.errors] == paths


def test_a_text_that_only_looks_like_the_escape_of_nul_is_no_nul() -> None:
    assert read(rb'{"anything": "\\u0000"}').anything == "\\u0000"


def test_what_is_validated_is_what_is_fingerprinted() -> None:
    body = parse_json(b'{"size": 1, "size": 2}')
    assert isinstance(body, JsonBody)
    assert body.canonical == b'{"size":2}'
    assert validate_body(Body, body, 422).size == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("value", "code", "message"),
    [
        (b"null", "WRONG_TYPE", "must be a text, a whole number, a number or true or false"),
        (b"{}", "WRONG_TYPE", "must be a text, a whole number, a number or true or false"),
        (b'"long"', "TOO_LONG", "must have at most 3 characters"),
    ],
)
def test_a_value_of_several_types_is_told_once(value: bytes, code: str, message: str) -> None:
    with pytest.raises(Problem) as caught:
        read(b'{"values": {"a": %s, "b": "ok"}, "size": "x"}' % value)
    assert [(error.path, error.code, error.message) for error in caught.value.errors] == [
        ("/size", "WRONG_TYPE", "must be a whole number"),
        ("/values/a", code, message),
    ]
