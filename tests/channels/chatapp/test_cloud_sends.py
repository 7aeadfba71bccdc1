"""Sends to the hosted API, besides what holds for every adapter: its codes, and accounts that it has not."""

from typing import Any

import pytest
from tests.channels.accounts import chatapp_account

from recado.channels.chatapp.cloud import Cloud
from recado.channels.chatapp.cloud_codes import MEANINGS, reported_code
from recado.channels.core.provider import Down, OutboundMessage
from recado.channels.core.refusals import PROVIDER_CODES


@pytest.mark.parametrize("code", [*MEANINGS, None, 139999, -1])
def test_a_report_s_error_has_a_failure_code_of_ours(code: int | None) -> None:
    assert reported_code(code) in PROVIDER_CODES


def test_a_report_says_what_a_refusal_would_have_said() -> None:
    assert [reported_code(code) for code in (131026, 131049, 131050, 130429, 131056, 368, 131000, 132015)] == [
        "recipient_unreachable",
        "policy_blocked",
        "opted_out",
        "rate_limited",
        "rate_limited",
        "number_unavailable",
        "provider_error",
        "template_unavailable",
    ]


@pytest.mark.parametrize(
    ("change", "code"),
    [({"access_token": None}, "unauthorized"), ({"phone_number_id": "../oauth", "access_token": "t"}, "not_found")],
)
async def test_an_account_that_cannot_be_addressed_is_down(
    change: dict[str, Any], code: str, fake_bridge: Any, cloud_to: Any, message: OutboundMessage
) -> None:
    cloud: Cloud = await cloud_to(fake_bridge.url)

    assert await cloud.send(message, chatapp_account(**change), 1) == Down(code)
    assert fake_bridge.requests == []


@pytest.mark.parametrize("url", ["ftp://a.example", "https://", "https://u:p@a.example", "https://a.example?x=1"])
def test_an_address_that_is_none_of_an_api_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="address"):
        Cloud(url=url, app_secret="s", clock=None)  # type: ignore[arg-type]
