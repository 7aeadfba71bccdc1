"""A template's variables and the rules of its submission (C11.2)."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.senders.number import NumberStatus
from recado.domain.templates.template import TemplateCategory
from recado.domain.templates.template_content import submission_errors, variable_count

MARKETING, AUTHENTICATION = TemplateCategory.MARKETING, TemplateCategory.AUTHENTICATION


def body(text: str = "Hello, your order arrives today.", *example: str) -> dict[str, Any]:
    return {"type": "BODY", "payload": {"text": text, "example": list(example)}}


def header(text: str) -> dict[str, Any]:
    return {"type": "header", "payload": {"format": "TEXT", "text": text}}


def footer(text: str) -> dict[str, Any]:
    return {"type": "FOOTER", "payload": {"text": text}}


def buttons(*some: dict[str, Any]) -> dict[str, Any]:
    return {"type": "BUTTONS", "payload": {"buttons": list(some)}}


def reply(text: str = "Yes") -> dict[str, Any]:
    return {"type": "QUICK_REPLY", "text": text}


def url(address: str = "https://example.com/{{1}}") -> dict[str, Any]:
    return {"type": "URL", "text": "Open", "url": address}


def faults(
    *components: dict[str, Any],
    name: str = "order_arrives",
    category: TemplateCategory = MARKETING,
    example_url: str | None = None,
    number: NumberStatus = NumberStatus.CONNECTED,
) -> list[tuple[str, str]]:
    found = submission_errors(
        name, category, components, example_url, env="live", number_id="num_1", number_status=number
    )
    return [(error.path, error.code) for error in found]


@pytest.mark.parametrize(
    ("components", "count"),
    [
        ([], 0),
        ([body()], 0),
        ([body("Hello {{1}}, order {{2}} and again {{1}}.")], 2),
        ([header("For {{1}}"), {"type": "body", "payload": {"text": "A {{1}} b."}}], 1),
        ([{"type": "BODY"}], 0),
        ([{"type": "BODY", "payload": "text"}], 0),
    ],
)
def test_the_variables_of_the_body_are_counted(components: list[dict[str, Any]], count: int) -> None:
    assert variable_count(components) == count


@pytest.mark.parametrize(
    "components",
    [
        [body()],
        [body("Hello {{1}}, order {{2}}.", "Ana", "17")],
        [header("For {{1}}"), body(), footer("Recado"), buttons(reply(), url(), url("http://example.com"))],
        [body("x" * 1024)],
        [body(), buttons(*[reply()] * 10)],
        [body(), buttons({"type": "PHONE_NUMBER", "text": "Call", "phoneNumber": "+551133334444"})],
        [body(), buttons({"type": "COPY_CODE"}), footer("x" * 60)],
        [body(), buttons({"type": "FLOW", "text": "x" * 25, "flowId": "flw_1"})],
    ],
)
def test_a_template_within_the_rules_may_be_submitted(components: list[dict[str, Any]]) -> None:
    assert faults(*components) == []


def test_a_flagged_number_may_submit() -> None:
    assert faults(body(), number=NumberStatus.FLAGGED) == []


@pytest.mark.parametrize("number", [NumberStatus.PENDING, NumberStatus.AVAILABLE, NumberStatus.DISCONNECTED])
def test_another_number_may_not(number: NumberStatus) -> None:
    assert faults(body(), number=number) == [("/numberId", "NUMBER_UNAVAILABLE")]


def test_a_number_that_is_not_verified_is_not_told_to_connect() -> None:
    [fault] = submission_errors(
        "order_arrives", MARKETING, [body()], None, env="live", number_id="num_1", number_status=NumberStatus.PENDING
    )
    assert fault.message == (
        "The number num_1 is pending: the provider has not verified it yet; wait until it is available, "
        "then POST /numbers/num_1/connect."
    )


@pytest.mark.parametrize("name", ["", "Order", "order-1", "a b", "ção", "x" * 513, "order\n"])
def test_a_name_has_its_form(name: str) -> None:
    assert faults(body(), name=name) == [("/name", "FORMAT")]


@pytest.mark.parametrize(
    ("components", "fault"),
    [
        ([], ("/components", "REQUIRED")),
        ([footer("x"), header("y")], ("/components", "REQUIRED")),
        ([body(), body()], ("/components/1/type", "TOO_MANY")),
        ([body(), footer("x"), footer("y")], ("/components/2/type", "TOO_MANY")),
        ([body(), header("x"), header("y")], ("/components/2/type", "TOO_MANY")),
        ([body(), buttons(reply()), buttons(reply())], ("/components/2/type", "TOO_MANY")),
        ([body(), {"type": "CAROUSEL"}], ("/components/1/type", "NOT_ALLOWED")),
        ([body("")], ("/components/0/payload/text", "REQUIRED")),
        ([{"type": "BODY"}], ("/components/0/payload/text", "REQUIRED")),
        ([body("x" * 1025)], ("/components/0/payload/text", "TOO_LONG")),
        ([body("{{1}} is here.", "x")], ("/components/0/payload/text", "NOT_ALLOWED")),
        ([body("Here is {{1}} ", "x")], ("/components/0/payload/text", "NOT_ALLOWED")),
        ([body("A {{2}} b.", "x")], ("/components/0/payload/text", "VARIABLES")),
        ([body("A {{1}} b {{3}} c.", "x", "y")], ("/components/0/payload/text", "VARIABLES")),
        ([body("A {{name}} b.", "x")], ("/components/0/payload/text", "VARIABLES")),
        ([body("A {{0}} b.", "x")], ("/components/0/payload/text", "VARIABLES")),
        ([body("A {{1}} b.")], ("/components/0/payload/example", "REQUIRED")),
        ([body("A {{1}} b.", " ")], ("/components/0/payload/example", "REQUIRED")),
        ([body("A {{1}} b.", "x", "y")], ("/components/0/payload/example", "REQUIRED")),
        ([body(), header("x" * 61)], ("/components/1/payload/text", "TOO_LONG")),
        ([body(), header("A {{1}} b {{2}}")], ("/components/1/payload/text", "TOO_MANY")),
        ([body(), {"type": "HEADER", "payload": {"format": "GIF"}}], ("/components/1/payload/format", "NOT_ALLOWED")),
        ([body(), {"type": "HEADER", "payload": {"format": "IMAGE"}}], ("/headerExampleUrl", "REQUIRED")),
        ([body(), footer("x" * 61)], ("/components/1/payload/text", "TOO_LONG")),
        ([body(), footer("A {{1}} b")], ("/components/1/payload/text", "NOT_ALLOWED")),
        ([body(), buttons()], ("/components/1/payload/buttons", "REQUIRED")),
        ([body(), buttons(*[reply()] * 11)], ("/components/1/payload/buttons", "TOO_MANY")),
        ([body(), buttons(*[url()] * 3)], ("/components/1/payload/buttons", "TOO_MANY")),
        ([body(), buttons(reply("x" * 26))], ("/components/1/payload/buttons/0/text", "TOO_LONG")),
        ([body(), buttons(reply(""))], ("/components/1/payload/buttons/0/text", "REQUIRED")),
        ([body(), buttons({"type": "OTHER", "text": "x"})], ("/components/1/payload/buttons/0/type", "NOT_ALLOWED")),
        ([body(), buttons(reply(), url("ftp://example.com"))], ("/components/1/payload/buttons/1/url", "FORMAT")),
        ([body(), buttons(url("javascript:alert(1)"))], ("/components/1/payload/buttons/0/url", "FORMAT")),
        ([body(), buttons(url("https://a..example/{{1}}"))], ("/components/1/payload/buttons/0/url", "FORMAT")),
        (
            [body(), buttons(*[{"type": "PHONE_NUMBER", "text": "Call", "phoneNumber": "+551133334444"}] * 2)],
            ("/components/1/payload/buttons", "TOO_MANY"),
        ),
        (
            [body(), buttons({"type": "PHONE_NUMBER", "text": "Call"})],
            ("/components/1/payload/buttons/0/phoneNumber", "REQUIRED"),
        ),
        ([body(), buttons({"type": "FLOW", "text": "Go"})], ("/components/1/payload/buttons/0/flowId", "REQUIRED")),
    ],
)
def test_each_broken_rule_is_one_entry(components: list[dict[str, Any]], fault: tuple[str, str]) -> None:
    assert faults(*components) == [fault]


def test_a_header_with_media_and_its_example_may_be_submitted() -> None:
    media = {"type": "HEADER", "payload": {"format": "image"}}
    assert faults(media, body(), example_url="https://example.com/a.png") == []


@pytest.mark.parametrize(
    ("components", "path"),
    [
        ([body("Your code, see https://example.com today.")], "/components/0/payload"),
        ([body("Your code, see www.example.com today.")], "/components/0/payload"),
        ([body("Your code 🔐 is here.")], "/components/0/payload"),
        ([body("Your code ❤️ is here.")], "/components/0/payload"),
        ([body(), footer("Bye 👋")], "/components/1/payload"),
        ([body(), buttons(reply("Ok 👍"))], "/components/1/payload"),
        ([body(), buttons(url())], "/components/1/payload/buttons"),
        ([body(), {"type": "HEADER", "payload": {"format": "IMAGE"}}], "/components/1/payload/format"),
    ],
)
def test_a_template_with_a_code_takes_no_url_media_or_emoji(components: list[dict[str, Any]], path: str) -> None:
    assert faults(*components, category=AUTHENTICATION, example_url="https://x.example") == [(path, "NOT_ALLOWED")]
    assert faults(*components, example_url="https://x.example") == []


def test_a_template_with_a_plain_code_may_be_submitted() -> None:
    assert faults(body("{{1}} é o seu código; não o conte a ninguém. 10 min.", "123456"), category=AUTHENTICATION) == [
        ("/components/0/payload/text", "NOT_ALLOWED")  # begins with the variable
    ]
    assert faults(body("O código {{1}} é seu nº 1: não conte.", "123456"), category=AUTHENTICATION) == []


def test_all_faults_are_told_at_once() -> None:
    found = faults(body("{{1}}"), footer("{{1}}"), name="X", number=NumberStatus.PENDING)
    assert len(found) == 5


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
payloads = st.dictionaries(
    st.sampled_from(["format", "text", "example", "buttons", "type", "url", "phoneNumber"]),
    json_values
    | st.lists(st.dictionaries(st.sampled_from(["type", "text", "url"]), json_values, max_size=3), max_size=3),
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["HEADER", "BODY", "FOOTER", "BUTTONS", "x"])},
            optional={"payload": payloads | json_values},
        ),
        max_size=5,
    ),
    st.sampled_from(list(TemplateCategory)),
)
def test_any_payload_that_was_stored_can_be_judged(
    components: list[dict[str, Any]], category: TemplateCategory
) -> None:
    for path, code in faults(*components, category=category):
        assert path.startswith("/")
        assert code.isupper()
    assert variable_count(components) >= 0


@given(st.text(alphabet="{}1a\n", max_size=40))
def test_the_distinct_texts_between_two_braces_and_the_next_two_are_counted(text: str) -> None:
    assert variable_count([body(text)]) == len(set(re.findall(r"\{\{(.*?)\}\}", text, re.DOTALL)))


def test_a_megabyte_of_open_braces_is_judged_like_any_long_text() -> None:
    assert faults(body("a" + "{{" * 500_000)) == [("/components/0/payload/text", "TOO_LONG")]


def test_of_thousands_of_buttons_the_first_ones_are_judged() -> None:
    found = faults(body(), buttons(*[{}] * 50_000))
    assert ("/components/1/payload/buttons", "TOO_MANY") in found
    assert len(found) < 20
    assert faults(body(), {"type": "BUTTONS", "payload": {"buttons": [0] * 50_000}}) == [
        ("/components/1/payload/buttons", "REQUIRED")
    ]


def test_a_format_or_a_type_that_is_no_text_is_none_of_those_allowed() -> None:
    deep = [["TEXT"]] * 10
    assert faults(body(), {"type": "HEADER", "payload": {"format": deep, "text": "x"}}) == [
        ("/components/1/payload/format", "NOT_ALLOWED")
    ]
    assert faults(body(), buttons({"type": deep, "text": "x"})) == [
        ("/components/1/payload/buttons/0/type", "NOT_ALLOWED")
    ]
