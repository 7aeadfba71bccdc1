"""Sends that are paid for, and an installation that bills nobody, through the whole application (C25.2)."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import aiohttp
import asyncpg
import orjson
import pytest
from tests.acceptance.served import ADMIN_TOKEN, PAYMENTS_SECRET, Served
from tests.acceptance.tenants import CUSTOMER, Tenant, text
from tests.program import Api, Refused
from tests.waiting import until

from recado.channels.core.signing import PROVIDER_SIGNATURE, signature, signing_key
from recado.domain.core.ids import NUMBER

PAYMENTS = "/v2/callbacks/payments/bridge"


async def told(url: str, body: bytes, secret: str) -> int:
    """The status of a callback that is signed with the secret."""
    headers = {PROVIDER_SIGNATURE: signature([signing_key(secret)], body, datetime.now(UTC))}
    async with aiohttp.ClientSession() as session, session.post(url + PAYMENTS, data=body, headers=headers) as answer:
        return answer.status


async def test_a_send_is_held_and_charged_once_and_the_ledger_sums_up(
    served: Served, tenants: tuple[Tenant, Tenant]
) -> None:
    async with Api(served.url, tenants[1].token) as api:
        sent = await api.call("POST", "/messages", text(tenants[1].ids[NUMBER]))
        assert sent["billing"] == {"coins": 100}

        async def entries() -> list[Any]:
            found = await api.call("GET", f"/v2/wallet/ledger?messageId={sent['id']}")
            return list(found["items"])

        await until(entries, "the message is charged")
        (charge,) = await entries()
        assert (charge["kind"], charge["coins"], charge["channel"]) == ("charge", -100, "chatapp")
        connection = await asyncpg.connect(**served.database)

        async def agrees() -> bool:
            """Once nothing of the organization moves between two looks."""
            wallet = await api.call("GET", "/v2/wallet")
            ledger = (await api.call("GET", "/v2/wallet/ledger?limit=200"))["items"]
            held = await connection.fetchval(
                "select sum(coins)::bigint from dispatch join messages using (organization_id, channel, id) "
                "where organization_id = $1 and messages.env = 'test'",
                tenants[1].organization_id,
            )
            held += await connection.fetchval(  # of pushes, by what is left of their audiences
                "select coalesce(sum((c.reach - c.delivered - c.failed - c.unregistered) * m.unit_coins), 0)::bigint "
                "from push_messages m join push_counts c on c.organization_id = m.organization_id and c.env = m.env "
                "and c.message_id = m.id where m.organization_id = $1 and m.env = 'test' and m.open and m.billed",
                tenants[1].organization_id,
            )
            balance = sum(entry["coins"] for entry in ledger)
            return bool((balance, held) == (wallet["balanceCoins"], wallet["heldCoins"]) and held > 0)

        await until(agrees, "the ledger and the holds sum up to the wallet")
        await connection.close()


async def test_a_payment_that_the_bridge_confirms_is_credited(served: Served, tenants: tuple[Tenant, Tenant]) -> None:
    async with Api(served.url, tenants[0].live) as api:
        asked = await api.call("POST", "/v2/wallet/top-ups", {"amountCents": 1_000})
        before = (await api.call("GET", "/v2/wallet"))["balanceCoins"]
        event = {"kind": "payment", "status": "paid", "reference": asked["paymentReference"], "amountCents": 1_000}
        for at in ("2026-11-20T09:00:00Z", "2026-11-20T09:00:01Z"):  # other bytes: both are taken
            body = orjson.dumps({"events": [{**event, "at": at}]})
            assert await told(served.url, body, "another secret") == 401
            assert await told(served.url, body, PAYMENTS_SECRET) == 200

        async def paid() -> bool:
            found = await api.call("GET", f"/v2/wallet/top-ups/{asked['id']}")
            return bool(found["status"] == "paid")

        await until(paid, "the top-up is paid")
        assert (await api.call("GET", "/v2/wallet"))["balanceCoins"] == before + 100_000


@pytest.fixture(scope="module")
def unbilled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An installation that bills nobody."""
    with Served(tmp_path_factory.mktemp("unbilled"), billing_enabled=False) as application:
        yield application


async def test_where_nothing_is_billed_nobody_pays_and_there_is_no_wallet(unbilled: Served) -> None:
    made = unbilled.first
    async with Api(unbilled.url, ADMIN_TOKEN) as administrator:
        path = f"/v2/admin/organizations/{made.organization.id}/wallet-credits"
        credit = {"env": "test", "coins": 1, "reference": "r"}
        assert await status(administrator, "POST", path, credit) == 404
    async with Api(unbilled.url, made.keys["test"][1]) as api:
        for method, path in (
            ("GET", "/v2/wallet"),
            ("PATCH", "/v2/wallet"),
            ("GET", "/v2/wallet/ledger"),
            ("POST", "/v2/wallet/top-ups"),
            ("GET", "/v2/wallet/top-ups"),
            ("GET", "/v2/wallet/top-ups/top_000000000000000000000"),
            ("GET", "/v2/wallet/prices"),
        ):
            assert await status(api, method, path, {} if method != "GET" else None) == 404, path
        inbound = {"numberId": made.number.id, "from": CUSTOMER, "text": "hello"}
        await api.call("POST", "/v2/sandbox/inbound", inbound)
        sent = await api.call("POST", "/messages", text(made.number.id))
        assert "billing" not in sent

        async def read() -> bool:
            found = await api.call("GET", f"/messages/{sent['id']}")
            assert "billing" not in found
            return bool(found["status"] == "read")

        await until(read, "the message is read")
    assert not [path for path in unbilled.document()["paths"] if "wallet" in path]
    body = orjson.dumps({"events": []})
    assert await told(unbilled.url, body, PAYMENTS_SECRET) == 404


async def status(api: Api, method: str, path: str, body: Any) -> int:
    """The status of an answer."""
    try:
        await api.call(method, path, body)
    except Refused as refused:
        return refused.status
    return 200
