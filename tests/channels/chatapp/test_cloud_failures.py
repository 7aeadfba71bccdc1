"""Operations of the hosted API for accounts that it has not, and lists of another shape."""

from typing import Any

import pytest
from tests.channels.accounts import chatapp_account
from tests.channels.chatapp.cloud_answers import LISTED, replies
from tests.channels.conformance.adapters import CLOUD

from recado.channels.chatapp.cloud import Cloud
from recado.channels.core.errors import ProviderError
from recado.channels.core.provider import Account

assert CLOUD.operations is not None
OPERATIONS = CLOUD.operations.calls


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
@pytest.mark.parametrize(
    "change",
    [{"access_token": None}, {"access_token": "t", "phone_number_id": "a/../b", "business_account_id": "?x=1"}],
)
async def test_an_account_that_cannot_be_addressed_is_told_without_a_call(
    operation: Any, change: dict[str, Any], fake_bridge: Any, cloud_to: Any
) -> None:
    cloud: Cloud = await cloud_to(fake_bridge.url)

    with pytest.raises(ProviderError):
        await operation(cloud, chatapp_account(**change))

    assert fake_bridge.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        {"data": {}},
        {"data": [LISTED], "paging": {"next": "x"}},
    ],
)
async def test_a_list_of_another_shape_is_malformed(
    answer: Any, fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies(answer)
    cloud: Cloud = await cloud_to(fake_bridge.url)

    with pytest.raises(ProviderError, match="malformed_answer"):
        await cloud.list_templates(account)
