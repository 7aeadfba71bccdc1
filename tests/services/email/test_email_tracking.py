"""What is added to an e-mail before it leaves (C10.2.7, C10.2.9)."""

import random
from typing import Any

import pytest

from recado.domain.contacts.contact import email_hash
from recado.domain.email.content import EmailContent
from recado.domain.email.html_links import HtmlPlaces, places_of
from recado.domain.email.plain_text import text_of_html
from recado.domain.email.public_tokens import EmailKey, PublicTokens
from recado.domain.email.rendering import Pieces
from recado.domain.email.template_text import TemplateText, TextSource
from recado.domain.links.tracked import MessageLinks
from recado.services.email import tracking
from recado.services.email.tracking import EmailTracking, TrackedEmail

BASE = "https://l.example.com"
MESSAGE = EmailKey("org_" + "1" * 21, "test", "msg_" + "2" * 21)
TOKENS = PublicTokens(b"k" * 32)
LINKS = '<a href="http://x.test/?a&amp;b">x</a> <a href="http://x.test/?a&b">x</a>'
HTML = f'<body>{LINKS} <a href="mailto:a@x.test">y</a></body>'


class Elsewhere:
    """Counts what it is given."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, html: str, *, caller: str) -> HtmlPlaces:
        self.asked.append(caller)
        return places_of(html)


def track(elsewhere: Elsewhere | None = None) -> EmailTracking:
    draws = random.Random(3).randbytes
    return EmailTracking(
        link_base=BASE,
        tokens=TOKENS,
        links=lambda known: MessageLinks(BASE, draws, known),
        elsewhere=elsewhere or Elsewhere(),
    )


async def prepared(content: EmailContent, made: EmailTracking | None = None, **how: Any) -> TrackedEmail:
    given = {"to": "Ana@example.com", "contact_id": None, "transactional": False, **how}
    return await (made or track()).prepare(content, MESSAGE, **given)


def content(html: str | None = HTML, **changes: Any) -> EmailContent:
    return EmailContent(from_address="a@example.com", subject="s", html=html, text="http://x.test", **changes)


async def test_links_have_a_code_for_each_address_and_the_image_stands_last() -> None:
    sent, links = await prepared(content())
    ((code, url),) = links
    assert url == "http://x.test/?a&b"
    image = f'<img src="{BASE}/o/{TOKENS.of_open(MESSAGE)}.gif" width="1" height="1" alt="" style="border:0">'
    short = f"{BASE}/l/{code}"
    assert sent.html == (
        f'<body><a href="{short}">x</a> <a href="{short}">x</a> <a href="mailto:a@x.test">y</a>{image}</body>'
    )
    assert sent.text == "http://x.test"


async def test_the_text_that_is_made_of_a_template_shows_the_links_as_they_leave() -> None:
    source = TextSource(TemplateText(Pieces(HTML)), {})
    for how in ({}, {"tracking": False}):
        sent, _ = await prepared(content(text_source=source), **how)
        assert sent.html is not None
        assert sent.text_source is not None
        text = sent.text_source.text(sent.html)
        assert text == text_of_html(sent.html)
        assert (f"({BASE}/l/" in text) is (how == {})


async def test_the_way_out_is_in_two_headers_and_says_who_and_which_address() -> None:
    sent, _ = await prepared(content(headers=(("X-Own", "1"),)), contact_id="cnt_" + "4" * 21)
    own, (name, address), post = sent.headers
    assert own == ("X-Own", "1")
    assert post == ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
    assert name == "List-Unsubscribe"
    assert address.startswith(f"<{BASE}/u/")
    assert address.endswith(">")
    who = TOKENS.unsubscribed(address[len(BASE) + 4 : -1])
    assert who == (MESSAGE, "cnt_" + "4" * 21, email_hash(MESSAGE.organization_id, "ana@example.com"))


@pytest.mark.parametrize(
    ("how", "tracked", "headers"),
    [
        ({}, True, 2),
        ({"tracking": False}, False, 2),
        ({"transactional": True}, False, 0),
        ({"transactional": True, "tracking": True}, True, 0),
    ],
)
async def test_what_is_transactional_is_neither_tracked_unasked_nor_unsubscribed(
    how: dict[str, Any], tracked: bool, headers: int
) -> None:
    sent, links = await prepared(content(), **how)
    assert (sent.html != HTML, bool(links), len(sent.headers)) == (tracked, tracked, headers)


async def test_an_email_of_text_alone_is_sent_as_it_is_but_for_its_headers() -> None:
    sent, links = await prepared(content(None))
    assert (sent.html, sent.text, links, len(sent.headers)) == (None, "http://x.test", (), 2)


async def test_the_way_out_is_no_link_to_count() -> None:
    html = f'<a href="{BASE}/u/x">out</a>'
    sent, links = await prepared(content(html))
    assert sent.html is not None
    assert sent.html.startswith(html)
    assert links == ()


async def test_asked_again_it_draws_other_codes() -> None:
    made = track()
    (_, (first,)), (_, (second,)) = await prepared(content(), made), await prepared(content(), made)
    assert first.code != second.code
    assert first.url == second.url


@pytest.mark.parametrize(("html", "asked"), [("x" * 100, 0), ("x" * 101, 1), ("<" * 11, 1), ("<&" * 6, 1)])
async def test_large_html_is_looked_through_elsewhere(html: str, asked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "LARGE", 100)
    monkeypatch.setattr(tracking, "MOST_AT_ONCE", 10)
    elsewhere = Elsewhere()
    sent, _ = await prepared(content(html), track(elsewhere))
    assert elsewhere.asked == [MESSAGE.organization_id] * asked
    assert sent.html is not None
    assert sent.html.startswith(html + "<img")
