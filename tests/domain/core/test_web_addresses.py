"""What no program can open is no web address, wherever one is taken."""

import pytest

from recado.domain.core.web_addresses import is_web_address, opens

NOTHING_OPENS = (
    "https://", "https://a b", "https://[", "https://[]/", "https://.", "https://..", "https://.example.com",
    "https://shop..example.com/a", "https://example.com:0/", "https://example.com:70000/", "https://example.com:x/",
    "https://user@/", "https://?a=b", "https:///a", "https:/example.com", "https:example.com", "https://a\nb",
)  # fmt: skip


@pytest.mark.parametrize("text", NOTHING_OPENS)
def test_what_no_program_can_open_is_none(text: str) -> None:
    assert not is_web_address(text)
    assert not opens(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://example.com", "HTTP://Example.com./a?b#c", "https://example.com:8443/", "https://[::1]:443/a",
        "https://lojas.são-paulo.example/á", "http://intranet/a",
    ],
)  # fmt: skip
def test_what_can_be_opened_is_one(text: str) -> None:
    assert is_web_address(text)
    assert opens(text)


def test_an_app_opens_links_of_its_own_scheme() -> None:
    assert opens("shop://cart/17")
    assert not any(map(opens, ("javascript:alert(1)", "DATA:text/html,a", "file:///etc", "cart/17", "://a", "")))
