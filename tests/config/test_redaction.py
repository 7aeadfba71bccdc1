"""Log entries carry no personal data and no secret (C30.3, C30.5)."""

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from recado.config.redaction import REDACTED, describe, redact, redact_entry, redact_text, render_error

PHONE = "+5511987654321"
TOKEN = "svc_test_" + "a1B2" * 10 + "xyz"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"sent to {PHONE}", "sent to [phone]"),
        ("call +55 (11) 98765-4321 now", "call [phone] now"),
        ("wa_id 5511987654321", "wa_id [phone]"),
        ('{"to": "5511987654321"}', '{"to": "[phone]"}'),
        (f"key {TOKEN}.", "key [token]."),
        ("cut short svc_live_aB3", "cut short [token]"),
        ("session svcs_live_" + "a" * 43, "session [token]"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer [token]"),
        ("maria.silva+news@mail.example.com.br asked", "[e-mail] asked"),
        ("postgresql://recado:hunter2@db.internal:5432/recado", "postgresql://[credentials]@db.internal:5432/recado"),
        ("GET /files?sig=aBc123&exp=9", "GET /files?sig=[redacted]&exp=9"),
    ],
)
def test_personal_data_and_secrets_inside_a_text_are_replaced(text: str, shown: str) -> None:
    assert redact_text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "msg_0aB3cD4e1234567890123",
        "num_000000001234567890123 has 3 queued",
        "2026-03-14T09:26:53.589Z",
        "took 0.123456789012 s",
        "+55*******4321",
        "/var/lib/recado/5f2e",
        "127.0.0.1:8080",
    ],
)
def test_what_identifies_nobody_stays_readable(text: str) -> None:
    assert redact_text(text) == text


@given(
    country=st.sampled_from(["1", "44", "55", "351"]), rest=st.integers(10**7, 10**11 - 1), around=st.text(max_size=20)
)
def test_no_phone_survives_in_any_surrounding(country: str, rest: int, around: str) -> None:
    phone = f"+{country}{rest}"

    assert phone not in redact_text(f"{around} {phone} {around}")


@pytest.mark.parametrize(
    "name",
    [
        "token",
        "access_token",
        "Authorization",
        "apiKey",
        "cursor_key",
        "index_key",
        "DATABASE_URL",
        "secret",
        "inviteToken",
        "password_hash",
        "cpf",
        "cnpjCipher",
        "birthDate",
        "nascimento",
    ],
)
def test_a_text_under_a_secret_looking_name_is_replaced_whole(name: str) -> None:
    assert redact("hunter2", name) == REDACTED
    assert redact({"outer": {name: "hunter2"}}) == {"outer": {name: REDACTED}}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the token svci_0123456789ABCDEFGHIJ fails", "the token [token] fails"),
        ("kept scrypt.15.8.1.c2FsdA.aGFzaA-_ so", "kept [password] so"),
        ("of 529.982.247-25, or 52998224725", "of [document], or [phone]"),
        ("of 12.ABC.345/01DE-35 and 11.222.333/0001-81.", "of [document] and [document]."),
        ("at 10.0.0.1 in 0.123.456-78 ms", "at 10.0.0.1 in 0.123.456-78 ms"),
    ],
)
def test_invitations_passwords_and_documents_are_replaced(text: str, shown: str) -> None:
    assert redact_text(text) == shown


def test_numbers_stay_whatever_they_are_called() -> None:
    assert redact({"tokens": 79.5, "attempts": 2, "open": True, "nothing": None}) == {
        "tokens": 79.5,
        "attempts": 2,
        "open": True,
        "nothing": None,
    }


def test_nested_values_keys_bytes_and_objects_are_covered() -> None:
    class Recipient:
        def __str__(self) -> str:
            return f"Recipient({PHONE})"

    entry = {"list": [PHONE], "map": {PHONE: 1}, "raw": b"\x00\x01", "object": Recipient(), "error": ValueError(PHONE)}

    assert redact_entry(None, "info", entry) == {
        "list": ["[phone]"],
        "map": {"[phone]": 1},
        "raw": "[2 bytes]",
        "object": "Recipient([phone])",
        "error": "ValueError: [phone]",
    }


def test_an_endless_structure_is_cut_off() -> None:
    endless: dict[str, object] = {}
    endless["again"] = endless

    assert REDACTED in str(redact(endless))


def test_database_errors_are_named_by_kind_because_their_text_quotes_rows() -> None:
    error = asyncpg.CheckViolationError.new(
        {"C": "23514", "M": "no partition", "D": "Failing row contains (msg_1, a private text)", "t": "messages"}
    )

    assert describe(error) == "CheckViolationError(sqlstate=23514 table_name=messages)"
    assert "private" not in describe(asyncpg.DataError("invalid input for query argument $1: 'a private text'"))


def test_validation_errors_do_not_quote_their_input() -> None:
    class Body(BaseModel):
        count: int

    with pytest.raises(ValidationError) as failure:
        TypeAdapter(Body).validate_python({"count": "a private text"})

    assert describe(failure.value) == "ValidationError(Body)"


def test_a_rendered_error_shows_its_causes_and_frames_but_no_values() -> None:
    def fail() -> None:
        try:
            raise asyncpg.DataError("invalid input for query argument $1: 'a private text'")
        except asyncpg.DataError as cause:
            raise RuntimeError("could not store") from cause

    with pytest.raises(RuntimeError) as failure:
        fail()
    text = render_error((RuntimeError, failure.value, failure.value.__traceback__))

    assert text.index("DataError") < text.index("which led to:") < text.index("RuntimeError: could not store")
    assert "in fail" in text
    assert "private" not in text


def test_every_member_of_an_error_group_is_shown() -> None:
    text = render_error((ExceptionGroup, ExceptionGroup("several", [ValueError("one"), KeyError("two")]), None))

    assert "ValueError: one" in text
    assert "KeyError: 'two'" in text
