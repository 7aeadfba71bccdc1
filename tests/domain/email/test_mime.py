"""E-mails as they travel, read again by others (C10.2.10)."""

from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.utils import parseaddr
from random import Random
from typing import Any

import pytest
from tests.domain.email.emails import lines_of, shown, some_email
from tests.examples import examples, seeds

from recado.domain.email.content import EmailContent
from recado.domain.email.mime import LONGEST_LINE, Origin, UnsendableEmail, compose, wire_address

AT = datetime(2026, 11, 26, 20, 30, tzinfo=UTC)
ORIGIN = Origin("msg_0000000100000000000a1", "org_000000000000000000001", AT)
CONTENT = EmailContent(from_address="news@example.com", from_name="News", subject="Hello", text="Hi")
EMAILS = examples(1_500)


def read(data: bytes) -> EmailMessage:
    message = message_from_bytes(data, policy=policy.default)
    assert isinstance(message, EmailMessage)
    return message


def display_name(data: bytes) -> str:
    """By the older parser: the newer one puts a space between encoded words in Python 3.11."""
    name, _ = parseaddr(message_from_bytes(data)["from"])
    return str(make_header(decode_header(name)))


def made(to: str = "ana@example.com", **changes: Any) -> EmailMessage:
    return read(compose(replace(CONTENT, **changes), to, ORIGIN).data)


@pytest.mark.parametrize("seed", seeds(4))
def test_random_emails_are_read_again_as_they_were_meant(seed: int) -> None:
    random = Random(seed)
    for _ in range(EMAILS):
        content, to = some_email(random)
        email = compose(content, to, ORIGIN)
        message = read(email.data)
        assert not message.defects
        assert shown(message["subject"]) == shown(content.subject)
        (sender,) = message["from"].addresses
        assert shown(display_name(email.data)) == shown(content.from_name or "")
        assert (sender.addr_spec, message["to"]) == (email.sender, email.recipient)
        names = ["From", "To", "Subject", "Date", "Message-ID", "Feedback-ID", *(name for name, _ in content.headers)]
        assert message.keys()[: len(names) + 1] == [*names, "MIME-Version"]
        for name, value in content.headers:
            assert message[name] == value
        parts = {part.get_content_subtype(): part for part in message.walk() if not part.is_multipart()}
        for kind, text in (("plain", content.text), ("html", content.html)):
            if text or (text is not None and content.html is None):
                assert lines_of(parts[kind].get_content()) == lines_of(text)
        assert all(len(line) <= LONGEST_LINE and b"\r" not in line for line in email.data.split(b"\r\n"))
        assert b"\n" not in email.data.replace(b"\r\n", b"")
        assert email.data.endswith(b"\r\n")


def test_headers_say_whose_it_is_and_when_it_left() -> None:
    message = made(transactional=True)
    assert message["message-id"] == f"<{ORIGIN.message_id}@example.com>"
    assert message["date"].datetime == AT
    assert message["feedback-id"] == f"transactional:example.com:{ORIGIN.organization_id}:recado"
    assert made()["feedback-id"].startswith("marketing:")


def test_html_without_a_text_gets_one() -> None:
    message = made(html='<p>Olá <b>Ana</b></p><p><a href="https://example.com/x">Entre</a></p>', text=None)
    assert [part.get_content_type() for part in message.walk()] == ["multipart/alternative", "text/plain", "text/html"]
    plain = message.get_body(("plain",))
    assert plain is not None
    assert lines_of(plain.get_content()) == ["Olá Ana", "", "Entre (https://example.com/x)"]


def test_html_that_shows_no_text_is_all_there_is() -> None:
    assert made(html="<img src=x>", text=None).get_content_type() == "text/html"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("plain", "7bit"),
        ("x" * 998, "7bit"),
        ("x" * 999, "quoted-printable"),
        ("a bell \x07", "quoted-printable"),
        ("uma ação em trinta letras, ou mais que isso", "quoted-printable"),
        ("привет", "base64"),
    ],
)
def test_a_body_is_encoded_by_what_it_holds(text: str, encoding: str) -> None:
    message = made(text=text)
    assert message["content-transfer-encoding"] == encoding
    assert lines_of(message.get_content()) == [text]


def test_half_a_character_becomes_a_question_mark() -> None:
    assert made(text="a\ud800b", subject="c\udfffd").get_content() == "a?b\r\n"


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r", "\u2028", "\x85", "\x0b", "\x00"])
@pytest.mark.parametrize("field", ["subject", "from_name"])
def test_no_field_begins_a_header(field: str, end: str) -> None:
    message = made(**{field: f"Hi{end}Bcc: eve@evil.example{end}{end}<p>body"})
    assert message["bcc"] is None
    assert message.get_content() == "Hi\r\n"
    assert "Hi Bcc: eve@evil.example" in message["subject" if field == "subject" else "from"]


@pytest.mark.parametrize(
    "headers",
    [
        ("X-Evil\r\nBcc", "x"),
        ("X Evil", "x"),
        ("X-Evil:", "x"),
        ("", "x"),
        ("Bcc", "eve@evil.example"),
        ("from", "eve@evil.example"),
        ("DKIM-Signature", "v=1"),
        ("List-Unsubscribe", "<https://x>\r\nBcc: eve@evil.example"),
        ("List-Unsubscribe", "<https://x>\n\n<p>"),
        ("List-Unsubscribe", " "),
    ],
)
def test_a_further_header_that_is_more_than_one_is_refused(headers: tuple[str, str]) -> None:
    with pytest.raises(UnsendableEmail) as refused:
        made(headers=(headers,))
    assert refused.value.field == "headers"


@pytest.mark.parametrize(
    "address",
    [
        "", "ana", "@example.com", "ana@", "ana@example..com", "ana@-x.example", "a b@example.com",
        "ana@example.com\r\n", "ana\r\nRCPT TO:<eve@evil.example>@example.com", "<ana@example.com>",
        "ana@[127.0.0.1]", '"a b"@example.com', "ana@example.com>", "ana,eve@example.com", ".ana@example.com",
        "ana@exa mple.com", "ana\x00@example.com", "ana@example.com SIZE=1", f"{'x' * 65}@example.com",
        f"ana@{'x.' * 130}com", "ana\ud800@example.com", "ana\u2028@example.com", "ana@xn--\u00e9.example",
        "\u00e9" * 33 + "@example.com",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(address: str) -> None:
    for field, changes in (("to", {"to": address}), ("from", {"from_address": address})):
        with pytest.raises(UnsendableEmail) as refused:
            made(**changes)
        assert refused.value.field == field
        assert not address or address not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "told", "utf8"),
    [
        ("Ana@Example.COM", "Ana@example.com", False),
        ("ana@bücher.example", "ana@xn--bcher-kva.example", False),
        ("ana@BÜCHER.example", "ana@xn--bcher-kva.example", False),
        ("josé@example.com", "josé@example.com", True),
        ("用户@例え.テスト", "用户@xn--r8jz45g.xn--zckzah", True),
        ("ana@localhost", "ana@localhost", False),
    ],
)
def test_a_domain_is_told_in_ascii_and_a_local_part_as_it_is(address: str, told: str, utf8: bool) -> None:
    found = wire_address(address, "to")
    assert (found.text, found.utf8) == (told, utf8)
    assert compose(CONTENT, address, ORIGIN).utf8 is utf8


def test_a_boundary_stands_in_no_part() -> None:
    boundary = f"--=_{ORIGIN.message_id}"
    message = made(html="<p>x</p>", text=f"{boundary}\n{boundary}_\n{boundary}--\nend")
    plain, html = message.iter_parts()
    assert lines_of(plain.get_content())[-1] == "end"
    assert lines_of(html.get_content()) == ["<p>x</p>"]


def test_nothing_of_an_email_is_in_its_repr() -> None:
    email = compose(replace(CONTENT, subject="a secret"), "ana@example.com", ORIGIN)
    assert "example.com" not in repr(email)
    assert "secret" not in repr(email)
