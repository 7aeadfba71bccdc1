"""Variables become texts that stand in a message as people read them (C9.5)."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domain.journeys.cases import BERLIN, SAO_PAULO, person

from recado.domain.journeys.steps import (
    ChatappSend,
    ContactVariable,
    EmailSend,
    EntryVariable,
    FixedVariable,
    RcsSend,
    SendContent,
    SendStep,
    SmsSend,
    Variable,
)
from recado.domain.journeys.variables import filled_content, variable_values

CHATAPP = ChatappSend("tpl_1", "num_1")
SMS = SmsSend("Oi {{1}}")
ADA = person(
    name="Ada",
    tags=("a", "b"),
    last_interaction_at=datetime(2026, 3, 1, 2, 59, tzinfo=UTC),
    attributes={"blank": " ", "empty": [], "none": None, "sizes": ["M", "GG"]},
)


def text_of(variable: Variable, content: SendContent = SMS, entry: dict[str, Any] | None = None) -> str | None:
    values = variable_values(SendStep("s", content, "next", {"1": variable}), ADA, entry or {}, SAO_PAULO)
    return None if values is None else values["1"]


def text_for(value: Any, content: SendContent = SMS) -> str | None:
    return text_of(EntryVariable("key"), content, {"key": value})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Anual", "Anual"),
        (10, "10"),
        (10.0, "10"),
        (0, "0"),
        (-0.5, "-0.5"),
        (199.9, "199.9"),
        (1e21, "1000000000000000000000"),
        (1e-7, "0.0000001"),
        (True, "true"),
        (False, "false"),
        ("2026-12-24", "24/12/2026"),
        (" 2026-12-24 ", "24/12/2026"),
        ("2026-12-24T22:00:00", "24/12/2026"),
        ("2026-12-24T22:00:00-03:00", "24/12/2026"),
        ("2026-12-25T02:59:59Z", "24/12/2026"),
        ("2026-12-25T03:00:00.000Z", "25/12/2026"),
        ("0026-01-02", "02/01/0026"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),  # where the journey is, there was no such day
        ("2026-02-30", "2026-02-30"),
        ("2026-12-24 or later", "2026-12-24 or later"),
        ("20261224", "20261224"),
        ("{{2}}", "{{2}}"),
    ],
)
def test_a_value_becomes_what_people_read(value: Any, text: str) -> None:
    assert text_for(value) == text


def test_values_come_from_the_contact_the_entry_or_the_step() -> None:
    assert text_of(ContactVariable("name")) == "Ada"
    assert text_of(ContactVariable("phone")) == "+5511987654321"
    assert text_of(ContactVariable("tags")) == "a, b"
    assert text_of(ContactVariable("attributes.sizes")) == "M, GG"
    assert text_of(ContactVariable("optIn.status")) == "unknown"
    assert text_of(ContactVariable("createdAt")) == "31/12/2025"
    assert text_of(ContactVariable("lastInteractionAt")) == "28/02/2026"
    assert text_of(EntryVariable("name"), entry={"name": "order"}) == "order"
    assert text_of(FixedVariable("Black Friday")) == "Black Friday"


@pytest.mark.parametrize(
    "variable",
    [
        lambda default: ContactVariable("email", default),
        lambda default: ContactVariable("attributes.blank", default),
        lambda default: ContactVariable("attributes.empty", default),
        lambda default: ContactVariable("attributes.none", default),
        lambda default: ContactVariable("entrada.name", default),
        lambda default: EntryVariable("unknown", default),
        lambda default: FixedVariable(" ", default),
    ],
)
def test_an_empty_value_takes_its_default_or_leaves_the_send_without(variable: Any) -> None:
    assert text_of(variable("cliente")) == "cliente"
    assert text_of(variable("")) is None
    assert text_of(variable(None)) is None


def test_one_empty_variable_of_many_leaves_the_send_without() -> None:
    step = SendStep("s", SMS, "next", {"1": ContactVariable("name"), "2": ContactVariable("email")})
    assert variable_values(step, ADA, {}, SAO_PAULO) is None


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\u2028", "\x85", "\v"])
def test_line_breaks_become_spaces_for_chatapp_only(line_break: str) -> None:
    value = f"one{line_break}two"
    assert text_for(value, CHATAPP) == "one two"
    assert text_for(value, SMS) == value
    assert text_for(value, EmailSend("etpl_1")) == value
    assert text_of(FixedVariable(" ", f"a{line_break}b"), CHATAPP) == "a b"


def test_a_value_is_cut_at_1024_characters() -> None:
    assert text_for("é" * 1_025) == "é" * 1_024
    assert text_for("a\r\n" * 1_024, CHATAPP) == "a " * 512
    assert text_of(FixedVariable("", "x" * 2_000)) == "x" * 1_024


def test_the_zone_of_the_journey_says_which_day_it_is() -> None:
    step = SendStep("s", SMS, "next", {"1": EntryVariable("at")})
    assert variable_values(step, ADA, {"at": "2026-12-24T23:30:00Z"}, BERLIN) == {"1": "25/12/2026"}


@given(st.one_of(st.text(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans()))
def test_no_value_becomes_an_empty_text_or_one_that_is_too_long(value: Any) -> None:
    found = text_for(value, CHATAPP)
    assert found is None or (found.strip() and len(found) <= 1_024 and len(found.splitlines()) == 1)


def test_texts_are_filled_and_what_a_value_says_is_not_read_again() -> None:
    values = {"1": "{{2}}", "2": "b"}
    assert filled_content(SmsSend("Oi {{1}} {{2}}", "otp"), values) == SmsSend("Oi {{2}} b", "otp")
    assert filled_content(CHATAPP, values) is CHATAPP
    card = {"title": "{{2}}!", "suggestions": [{"type": "url", "text": "Ver", "value": "https://x.test/{{2}}"}], "n": 1}
    filled = filled_content(RcsSend("{{2}}", "easy_rcs", "SMS {{2}}", card), values)
    assert filled == RcsSend(
        "b",
        "easy_rcs",
        "SMS b",
        {"title": "b!", "suggestions": [{"type": "url", "text": "Ver", "value": "https://x.test/b"}], "n": 1},
    )
    assert filled_content(RcsSend("{{2}}"), values) == RcsSend("b")
