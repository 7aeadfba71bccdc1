"""The hosted API's operations besides sending: what is asked, and how answers are read."""

from typing import Any

import pytest
from tests.channels.chatapp.cloud_answers import replies

from recado.channels.chatapp.cloud import Cloud
from recado.channels.core.provider import (
    Account,
    NumberHealth,
)

NUMBER = {
    "id": "pn-1",
    "verified_name": "Padaria",
    "code_verification_status": "VERIFIED",
    "quality_rating": "YELLOW",
    "status": "FLAGGED",
    "name_status": "AVAILABLE_WITHOUT_REVIEW",
    "throughput": {"level": "HIGH"},
    "whatsapp_business_manager_messaging_limit": "TIER_2K",
    "health_status": {
        "entities": [
            {"entity_type": "PHONE_NUMBER", "can_send_message": "AVAILABLE"},
            {"errors": [{"error_code": 141010, "error_description": "Call +55 11 98765-4321"}, 7]},
            7,
        ]
    },
}
PROFILE = {
    "data": [
        {"about": "Pão", "websites": ["https://a.example", "https://b.example"], "vertical": "UNDEFINED", "email": ""}
    ]
}


async def test_health_is_read_from_the_number_and_its_profile(
    fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies(NUMBER, PROFILE)
    cloud: Cloud = await cloud_to(fake_bridge.url)

    assert await cloud.number_health(account) == NumberHealth(
        verified=True,
        status="flagged",
        quality_rating="yellow",
        messaging_tier="tier_2k",
        name_status="approved",
        verified_name="Padaria",
        per_second=1_000,
        profile={"about": "Pão", "website": "https://a.example"},
        issues=(("141010", "Call ***"),),
    )
    assert [request.path.partition("?")[0] for request in fake_bridge.requests] == [
        "/base/pn-1",
        "/base/pn-1/whatsapp_business_profile",
    ]


@pytest.mark.parametrize(
    ("number", "health"),
    [
        ({}, NumberHealth(verified=False)),
        (
            {"status": "CONNECTED", "code_verification_status": "EXPIRED"},
            NumberHealth(verified=True, status="connected"),
        ),
        ({"status": "PENDING", "code_verification_status": "NOT_VERIFIED"}, NumberHealth(verified=False)),
        ({"status": "BANNED"}, NumberHealth(verified=False, status="disconnected")),
        ({"status": "NEW_WORD", "quality_rating": "BLUE", "name_status": "?"}, NumberHealth(verified=False)),
        ({"quality_rating": "NA", "throughput": None}, NumberHealth(verified=False, quality_rating="unknown")),
        ({"health_status": {"entities": {}}}, NumberHealth(verified=False)),
    ],
)
async def test_words_that_are_not_known_say_nothing(
    number: dict[str, Any], health: NumberHealth, fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies(number, {"data": []})
    cloud: Cloud = await cloud_to(fake_bridge.url)

    assert await cloud.number_health(account) == health


async def test_connecting_subscribes_to_the_account_and_registers_with_the_same_pin_each_time(
    fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies(*[{"success": True}] * 5)
    cloud: Cloud = await cloud_to(fake_bridge.url)

    await cloud.connect(account)
    await cloud.connect(account)
    await cloud.disconnect(account)

    paths = [request.path for request in fake_bridge.requests]
    assert paths == [*["/base/ba-1/subscribed_apps", "/base/pn-1/register"] * 2, "/base/pn-1/deregister"]
    pins = {request.json["pin"] for request in fake_bridge.requests if "pin" in request.json}
    assert len(pins) == 1
    assert len(pins.pop()) == 6


async def test_a_profile_is_written_whole(fake_bridge: Any, cloud_to: Any, account: Account) -> None:
    fake_bridge.behaviour = replies({"success": True})
    cloud: Cloud = await cloud_to(fake_bridge.url)

    await cloud.update_profile(account, {"about": "Pão", "email": "a@b.example", "profilePictureUrl": "https://p"})

    assert fake_bridge.requests[0].json == {
        "messaging_product": "whatsapp",
        "about": "Pão",
        "address": "",
        "email": "a@b.example",
        "websites": [],
    }
