"""A load test pays for itself in test, and spends what there is in live."""

from typing import Any

import pytest

from recado.cli.errors import CommandError
from recado.cli.loadtest.preparation import prepare
from recado.domain.top_up import MOST_COINS

NUMBER = {"id": "num_1", "messagingTier": "unlimited", "rateLimit": {"perSecond": 80}}
TEMPLATE = {"id": "tpl_1", "name": "load_test", "status": "approved", "components": []}


class Recorded:
    """An API with one number, one template and a wallet; `wallet` None: the call is refused."""

    def __init__(self, wallet: dict[str, Any] | None) -> None:
        self._wallet = wallet
        self.top_ups: list[Any] = []

    async def call(self, method: str, path: str, *, query: Any = None, body: Any = None) -> Any:
        if path == "/v2/wallet":
            if self._wallet is None:
                raise CommandError("GET /v2/wallet answered 404")
            return self._wallet
        if path == "/v2/wallet/top-ups":
            self.top_ups.append(body)
            return {}
        return NUMBER

    async def items(self, path: str, query: Any) -> list[Any]:
        return [TEMPLATE] if path == "/v2/templates" else [NUMBER]


@pytest.mark.parametrize(
    ("wallet", "top_ups"),
    [
        ({"env": "test", "availableCoins": 0}, [{"coins": MOST_COINS}]),
        ({"env": "test", "availableCoins": 1_000_000_000}, [{"coins": MOST_COINS}]),
        ({"env": "test", "availableCoins": MOST_COINS}, []),
        ({"env": "live", "availableCoins": 0}, []),
        (None, []),
    ],
)
async def test_a_test_wallet_is_filled_when_it_runs_low(wallet: dict[str, Any] | None, top_ups: list[Any]) -> None:
    api: Any = Recorded(wallet)
    senders = await prepare(api, number_ids=(), count=1, template_id=None, per_second=None)
    assert [(sender.number_id, sender.template_id) for sender in senders] == [("num_1", "tpl_1")]
    assert api.top_ups == top_ups
