"""What can be ordered of the simulated hosted API, and what it lets nobody do."""

from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from tests.simulator.cloud.conftest import ACCOUNT, MESSAGE, Play, Service

from recado.channels.core.events import Inbound, NumberNews, Preference
from recado.channels.core.provider import Accepted
from recado.simulator.record import read_record


async def test_quality_and_tier_change_on_demand_with_their_webhooks(play: Play, app: Service) -> None:
    stage = await play()
    path = f"numbers/{ACCOUNT.provider_id}"
    await stage.control(path, business_account="102290129340398", display_phone_number="5511900000000")
    named = {"business_account": "102290129340398", "phone": "5511900000000"}

    await stage.control(path, quality_rating="RED")
    assert (await stage.cloud.number_health(ACCOUNT)).status == "flagged"
    await stage.control(path, quality_rating="GREEN")
    await stage.control(path, messaging_limit="TIER_1K")
    await stage.control(path, name_status="DECLINED")

    before = await stage.cloud.number_health(ACCOUNT)
    assert (await stage.control(path, messaging_limit="TIER_9", quality_rating="RED"))[0] == 400
    assert await stage.cloud.number_health(ACCOUNT) == before

    events = await app.has(4)
    assert [replace(event, at=None) for event in events] == [
        NumberNews(None, None, "flagged", tier="unlimited", **named),
        NumberNews(None, None, "connected", tier="unlimited", **named),
        NumberNews(None, None, tier="tier_1k", **named),
        NumberNews(None, None, name_status="rejected", **named),
    ]
    health = await stage.cloud.number_health(ACCOUNT)
    assert (health.status, health.quality_rating, health.messaging_tier) == ("connected", "green", "tier_1k")


async def test_people_write_and_choose_on_demand(play: Play, app: Service) -> None:
    stage = await play()
    number = ACCOUNT.provider_id

    status, answer = await stage.control("inbound", number=number, **{"from": "+5511987654321"}, text="Oi", name="Ana")
    image = {"type": "image", "image": {"id": "77", "mime_type": "image/png"}}
    await stage.control("inbound", number=number, **{"from": "5511987654321"}, message=image, quoted="sim_1")
    await stage.control("preferences", number=number, **{"from": "5511987654321"}, value="stop")
    await stage.control("accounts/9", event="PARTNER_REMOVED", waba_info={"waba_id": "9", "owner_business_id": "8"})

    text, picture, preference, removal = await app.has(4)
    assert isinstance(text, Inbound)
    assert status == 200
    assert (text.account, text.sender, text.provider_message_id) == (number, "5511987654321", answer["id"])
    assert (text.payload, text.profile_name) == ({"text": {"body": "Oi"}}, "Ana")
    assert (picture.media_ref, picture.quoted, picture.payload["kind"]) == ("77", "sim_1", "image")
    assert isinstance(preference, Preference)
    assert preference.stopped
    assert (removal.business_account, removal.partner_removed) == ("9", "PARTNER_REMOVED")


async def test_people_without_a_phone_write_and_choose(play: Play, app: Service) -> None:
    stage = await play()
    number, user = ACCOUNT.provider_id, "BR.1502576394655843"
    await stage.control("inbound", number=number, **{"from": user}, text="Oi", name="Ana")
    await stage.control("preferences", number=number, **{"from": user}, value="stop")

    text, preference = await app.has(2)
    assert isinstance(text, Inbound)
    assert (text.sender, text.user_id, text.profile_name) == (user, None, "Ana")
    assert isinstance(preference, Preference)
    assert (preference.phone, preference.stopped) == (user, True)


async def test_people_write_at_a_rate(play: Play, app: Service) -> None:
    stage = await play()

    _, answer = await stage.control(
        "inbound-rate", number=ACCOUNT.provider_id, **{"from": "5511900000001"}, perSecond=1000, seconds=0.05
    )

    events = await app.has(50)
    assert answer["count"] == 50
    assert len({event.sender for event in events}) == 50


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("dances", {}),
        ("inbound", {}),
        ("inbound", {"number": "1", "from": "Ana"}),
        ("numbers/1", {"colour": "red"}),
        ("templates/1", {"status": "PAUSED"}),
        ("inbound-rate", {"number": "1", "from": "1", "perSecond": 0, "seconds": 1}),
        ("errors", {"code": "x"}),
    ],
)
async def test_an_order_that_makes_no_sense_is_refused(path: str, body: dict[str, Any], play: Play) -> None:
    stage = await play()

    assert (await stage.control(path, **body))[0] == 400


async def test_nobody_is_let_in_without_a_token_and_no_other_request_is_understood(play: Play) -> None:
    stage = await play()
    url = f"{stage.simulator.url}/v24.0/1"
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/messages", data=b"{}") as answer:
            assert (answer.status, (await answer.json())["error"]["code"]) == (401, 190)
        headers = {"Authorization": "Bearer t"}
        for body in (b"", b"[]", b"{}", b'{"messaging_product": "other"}', b'{"messaging_product": "whatsapp"}'):
            async with session.post(f"{url}/messages", data=body, headers=headers) as answer:
                assert (answer.status, (await answer.json())["error"]["code"]) == (400, 100)
        async with session.post(f"{url}/dances", data=b"{}", headers=headers) as answer:
            assert answer.status == 404
        async with session.get(url, headers=headers) as answer:
            assert answer.status == 400
    assert read_record(stage.record) == []


@pytest.mark.parametrize("protocol", ["cloud", "bridge"])
async def test_one_protocol_alone_knows_nothing_of_the_other(protocol: str, play: Play) -> None:
    stage = await play(protocol=protocol)
    headers = {"Authorization": "Bearer t"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{stage.simulator.url}/send", data=b"{}", headers=headers) as answer,
    ):
        known = "error" not in await answer.json()

    assert known is (protocol == "bridge")
    assert isinstance(await stage.cloud.send(MESSAGE, ACCOUNT, 1), Accepted) is (protocol == "cloud")
