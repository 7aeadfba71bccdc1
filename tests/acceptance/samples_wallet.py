"""Samples of the operations on the wallet; see samples.py."""

from tests.acceptance.caller import Request
from tests.acceptance.samples import fresh, new, sample
from tests.acceptance.tenants import Tenant
from tests.program import Api

from recado.domain.core.ids import ORGANIZATION, TOP_UP


@sample("updateWallet")
async def threshold(api: Api, tenant: Tenant) -> Request:
    return Request(body={"lowBalanceThresholdCoins": 1_000 + fresh()})


@sample("createTopUp")
async def top_up(api: Api, tenant: Tenant) -> Request:
    return Request(body={"coins": 1_000})


@sample("getTopUp")
async def one_top_up(api: Api, tenant: Tenant) -> Request:
    return Request({"id": tenant.ids[TOP_UP]})


@sample("creditWallet")
async def credit(api: Api, tenant: Tenant) -> Request:
    body = {"env": "test", "coins": 1_000, "reference": new("invoice ")}
    return Request({"id": tenant.ids[ORGANIZATION]}, body=body)
