"""A phone that the provider does not reach is not in an audience for the chat app until the person writes (C13.2)."""

import secrets
from typing import Any

from tests.acceptance.sandbox.customer import Customer, phone
from tests.waiting import until


async def test_who_cannot_be_reached_leaves_the_audience_until_writing_again(regular: Customer) -> None:
    api, tag = regular.api, secrets.token_hex(8)
    there, gone = phone(), phone("9001")
    for who in (there, gone):
        await api.call("POST", "/contacts", {"phone": who, "tags": [tag]})

    async def reached() -> Any:
        filters = [
            {"field": "tag", "operator": "is", "value": tag},
            {"field": "channel", "operator": "is", "value": "chatapp"},
        ]
        return (await api.call("POST", "/v2/segments/preview", {"filters": filters}))["count"]

    async def reaches(count: int) -> bool:
        return bool(await reached() == count)

    assert await reached() == 2
    await regular.reaches(await regular.send(there), "read")
    failed = await regular.reaches(await regular.send(gone), "failed")
    assert failed["lastError"].startswith("recipient_unreachable: ")
    await until(lambda: reaches(1), "the phone is not reachable any more")

    await api.call("POST", "/v2/sandbox/inbound", {"numberId": regular.number_id, "from": gone, "text": "here I am"})
    assert await reached() == 2
