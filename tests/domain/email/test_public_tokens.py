"""Tokens of e-mails lead back to what they were made of, hide the address, and cannot be made up (C27.2, C27.3)."""

import re

from hypothesis import given
from hypothesis import strategies as st

from recado.domain.contacts.contact import email_hash
from recado.domain.core.ids import BASE62, CONTACT, MESSAGE, ORGANIZATION
from recado.domain.email.public_tokens import EmailKey, PublicTokens, Unsubscription

TOKENS = PublicTokens(b"k" * 32)


def ids(prefix: str) -> st.SearchStrategy[str]:
    return st.text(BASE62, min_size=21, max_size=21).filter(lambda body: body != "0" * 21).map(prefix.__add__)


MESSAGES = st.builds(EmailKey, ids(ORGANIZATION), st.sampled_from(["test", "live"]), ids(MESSAGE))
PEOPLE = st.builds(Unsubscription, MESSAGES, st.none() | ids(CONTACT), st.binary(min_size=32, max_size=32))
ANA = Unsubscription(
    EmailKey("org_" + "1" * 21, "test", "msg_" + "2" * 21), None, email_hash("org_" + "1" * 21, "a@x.test")
)


@given(MESSAGES, PEOPLE)
def test_a_token_leads_back(message: EmailKey, who: Unsubscription) -> None:
    opened, unsubscribed = TOKENS.of_open(message), TOKENS.of_unsubscription(who)
    assert TOKENS.opened(opened) == message
    assert TOKENS.unsubscribed(unsubscribed) == who
    assert re.fullmatch(r"[0-9A-Za-z_-]{65}", opened)
    assert re.fullmatch(r"[0-9A-Za-z_-]{129}", unsubscribed)
    assert TOKENS.opened(unsubscribed) is None
    assert TOKENS.unsubscribed(opened) is None


@given(PEOPLE, st.data())
def test_what_was_changed_is_no_token(who: Unsubscription, data: st.DataObject) -> None:
    for token, read in (
        (TOKENS.of_open(who.message), TOKENS.opened),
        (TOKENS.of_unsubscription(who), TOKENS.unsubscribed),
    ):
        place = data.draw(st.integers(0, len(token) - 1))
        other = data.draw(st.sampled_from(BASE62 + "-_").filter(lambda each: each != token[place]))  # noqa: B023
        assert read(token[:place] + other + token[place + 1 :]) is None
        assert [read(each) for each in (token + "0", token[1:], "é" * len(token), "")] == [None] * 4


def test_another_installation_has_other_tokens() -> None:
    other = PublicTokens(b"l" * 32)
    assert other.opened(TOKENS.of_open(ANA.message)) is None
    assert other.unsubscribed(TOKENS.of_unsubscription(ANA)) is None


def test_tokens_of_the_key_before_lead_back_too() -> None:
    later = PublicTokens(b"l" * 32, b"k" * 32)
    assert later.opened(TOKENS.of_open(ANA.message)) == ANA.message
    assert later.unsubscribed(TOKENS.of_unsubscription(ANA)) == ANA
    assert later.unsubscribed(later.of_unsubscription(ANA)) == ANA
    assert TOKENS.unsubscribed(later.of_unsubscription(ANA)) is None


def test_the_hash_of_the_address_is_in_no_token_in_any_spelling() -> None:
    token = TOKENS.of_unsubscription(ANA)
    plain = PublicTokens(b"k" * 32).of_unsubscription(ANA._replace(address_hash=bytes(32)))
    masked, mask = token[64:107], plain[64:107]
    assert masked != mask
    assert plain[:64] == token[:64]
    again = TOKENS.of_unsubscription(ANA._replace(message=ANA.message._replace(message_id="msg_" + "3" * 21)))
    assert again[64:107] != masked  # of another message it looks different
