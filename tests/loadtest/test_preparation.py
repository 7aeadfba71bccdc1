"""A load test pays for itself in test, and spends what there is in live."""

from typing import Any

import pytest

from recado.domain.billing.top_up import MOST_COINS
from recado.loadtest.channels import CHANNELS
from recado.loadtest.errors import LoadTestError
from recado.loadtest.preparation import Changes, fill_wallet, prepare

NUMBER = {"id": "num_1", "messagingTier": "unlimited", "rateLimit": {"perSecond": 80}}
TEMPLATE = {"id": "tpl_1", "name": "load_test", "status": "approved", "components": []}
PRICES = [
    {"channel": "chatapp", "coins": [500, 300]},
    {"channel": "chatapp", "coins": [800], "internationalCoins": 900},
    {"channel": "sms", "coins": [7_000]},
]


class Recorded:
    """An API with one number, one template and a wallet; `wallet` None: the call is refused."""

    def __init__(self, wallet: dict[str, Any] | None) -> None:
        self._wallet = wallet
        self.top_ups: list[Any] = []
        self.changes: list[Any] = []
        self.number = NUMBER

    async def call(self, method: str, path: str, *, query: Any = None, body: Any = None) -> Any:
        if path == "/v2/wallet":
            if self._wallet is None:
                raise LoadTestError("GET /v2/wallet answered 404")
            return self._wallet
        if path == "/v2/wallet/prices":
            return {"prices": PRICES}
        if path == "/v2/wallet/top-ups":
            self.top_ups.append(body)
            return {}
        if method != "GET":
            self.changes.append((method, path, body))
        return self.number

    async def items(self, path: str, query: Any) -> list[Any]:
        return [TEMPLATE] if path == "/v2/templates" else [self.number]


@pytest.mark.parametrize(
    ("wallet", "coins"),
    [
        ({"env": "test", "availableCoins": 0}, 90_000),
        ({"env": "test", "availableCoins": 89_000}, 1_000),
        ({"env": "test", "availableCoins": 90_000}, 0),
        ({"env": "live", "availableCoins": 0}, 0),
        (None, 0),
    ],
)
async def test_a_test_wallet_gets_what_it_lacks_for_the_run_and_no_more(
    wallet: dict[str, Any] | None, coins: int
) -> None:
    api: Any = Recorded(wallet)
    assert await fill_wallet(api, {"chatapp": 100}) == coins
    assert api.top_ups == ([{"coins": coins}] if coins else [])


async def test_one_top_up_is_of_no_more_than_a_top_up_may_be() -> None:
    api: Any = Recorded({"env": "test", "availableCoins": 0})
    assert await fill_wallet(api, {"chatapp": 10**12}) == MOST_COINS


async def test_the_senders_are_the_connected_numbers_with_their_template() -> None:
    api: Any = Recorded(None)
    senders = await prepare(api, Changes(api), number_ids=(), count=1, template_id=None, per_second=None)
    assert [(sender.name, sender.body["templateId"]) for sender in senders] == [("num_1", "tpl_1")]


async def test_a_channel_without_numbers_is_one_sender_of_a_pace_that_only_the_caller_knows() -> None:
    api: Any = Recorded({"env": "test", "availableCoins": 0})
    for pace in (None, 50):
        (sender,) = await prepare(
            api, Changes(api), channel="sms", number_ids=(), count=1, template_id=None, per_second=pace
        )
        assert (sender.name, sender.per_second, sender.body["text"]) == ("sms", pace, CHANNELS["sms"].body["text"])
    assert await fill_wallet(api, {"sms": 2}) == 14_000
    assert api.changes == []


@pytest.mark.parametrize("given", [{"count": 2}, {"number_ids": ["num_1"]}, {"template_id": "tpl_1"}])
async def test_it_takes_no_numbers_and_no_template(given: dict[str, Any]) -> None:
    api: Any = Recorded(None)
    usual = {"channel": "sms", "number_ids": (), "count": 1, "template_id": None, "per_second": None}
    with pytest.raises(LoadTestError, match="are not of channel sms"):
        await prepare(api, Changes(api), **{**usual, **given})


async def test_what_was_changed_of_a_number_is_put_back() -> None:
    api: Any = Recorded(None)
    api.number = {**NUMBER, "messagingTier": "tier_250"}
    changes = Changes(api)
    await prepare(api, changes, number_ids=(), count=1, template_id=None, per_second=200)
    made = len(api.changes)
    await changes.put_back()
    await changes.put_back()
    assert made == 2
    assert api.changes[made:] == [
        ("PATCH", "/numbers/num_1", {"rateLimit": {"perSecond": 80}}),
        ("POST", "/v2/sandbox/numbers/num_1", {"messagingTier": "tier_250"}),
    ]
