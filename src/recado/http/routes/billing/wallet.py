"""The wallet of an environment: balance, threshold, ledger and top-ups (C25.1)."""

from typing import Any

from recado.domain.core.errors import FieldError, not_found, validation_error
from recado.domain.core.ids import LEDGER_ENTRY, TOP_UP, IdSource
from recado.domain.messages.changes import DeliveriesQueued, OnChange
from recado.http.api.audit import record
from recado.http.api.call import Call
from recado.http.api.paging import Cursors, PageQuery, items_of
from recado.http.api.route import Idempotency, Route
from recado.http.routes.billing.wallet_models import (
    LedgerPage,
    LedgerQuery,
    TopUpCreate,
    TopUpOut,
    TopUpPage,
    WalletOut,
    WalletPatch,
    entry_view,
    top_up_view,
    wallet_view,
)
from recado.http.routes.core.lists import listed
from recado.http.wire.reply import Reply
from recado.storage.billing import ledger, top_ups
from recado.storage.billing.top_ups import TopUp
from recado.storage.core.postgres import Database
from recado.storage.webhooks.webhooks import SubscriptionKey

LEDGER = "listLedger"
PAGES = f"{LEDGER} by position"


class WalletOperations:
    """The handlers."""

    def __init__(self, database: Database, ids: IdSource, cursors: Cursors, changed: OnChange) -> None:
        self._database = database
        self._ids = ids
        self._cursors = cursors
        self._changed = changed

    async def read(self, call: Call) -> Reply:
        principal = call.principal
        wallet = await ledger.get(self._database, principal.organization_id, principal.env)
        if wallet is None:
            raise not_found()
        return Reply(200, wallet_view(wallet))

    async def patch(self, call: Call) -> Reply:
        principal, changes = call.principal, call.body.changes()
        if "low_balance_threshold_coins" not in changes:
            return await self.read(call)
        coins = changes["low_balance_threshold_coins"]
        async with self._database.transaction() as connection:
            before, after, queued = await ledger.set_threshold(
                connection, self._ids, principal.organization_id, principal.env, coins, call.now
            )
            if after is not before:
                details = {"lowBalanceThresholdCoins": coins}
                await record(connection, self._ids, call, "wallet.update", after.id, details)
        self._announce(queued)
        return Reply(200, wallet_view(after))

    async def list_entries(self, call: Call) -> Reply:
        query: LedgerQuery = call.query
        period = None if query.from_ is None and query.to is None else query.ids(LEDGER_ENTRY)
        after_page = self._cursors.read(call, PAGES)
        entries = await ledger.list_page(
            self._database,
            call.principal.organization_id,
            call.principal.env,
            period=period,
            before_position=None if after_page is None else after_page[0],
            kind=query.kind,
            message_id=query.message_id,
            limit=query.limit + 1,
        )
        items = items_of(call, entries, entry_view)
        return Reply(200, await self._cursors.page(call, PAGES, items, lambda entry: [entry.position]))

    async def top_up(self, call: Call) -> Reply:
        principal, body = call.principal, call.body
        place: dict[str, Any] = {
            "organization_id": principal.organization_id,
            "env": principal.env,
            "created_by_id": principal.actor_id,
            "now": call.now,
        }
        queued: tuple[SubscriptionKey, ...] = ()
        amount = _given(body, principal.env)
        async with self._database.transaction() as connection:
            if principal.env == "test":
                made, credited = await top_ups.create_paid(connection, self._ids, coins=amount, **place)
                queued = credited.queued
            else:
                made = await top_ups.create_pending(connection, self._ids, amount_cents=amount, **place)
            await record(connection, self._ids, call, "wallet.top_up", made.id, {"coins": made.coins})
        self._announce(queued)
        return Reply(201, top_up_view(made))

    async def list_top_ups(self, call: Call) -> Reply:
        principal, query = call.principal, call.query
        page = await top_ups.list_page(
            self._database.page(query.skip),
            principal.organization_id,
            principal.env,
            limit=query.limit,
            skip=query.skip,
        )
        return await listed(page, top_up_view)

    async def find_top_up(self, call: Call) -> TopUp:
        principal = call.principal
        found = await top_ups.get(self._database, principal.organization_id, principal.env, call.path["id"])
        if found is None:
            raise not_found()
        return found

    async def read_top_up(self, call: Call) -> Reply:
        return Reply(200, top_up_view(call.resource))

    def _announce(self, queued: tuple[SubscriptionKey, ...]) -> None:
        if queued:
            self._changed(DeliveriesQueued(queued))


def _given(body: TopUpCreate, env: str) -> int:
    """What the environment takes: coins in test, cents in live."""
    name, given = ("coins", body.coins) if env == "test" else ("amountCents", body.amount_cents)
    if given is None:
        raise validation_error([FieldError(f"/{name}", "REQUIRED", f"is required in {env}")])
    return given


def wallet_routes(*, database: Database, ids: IdSource, cursors: Cursors, changed: OnChange) -> tuple[Route, ...]:
    """What the owner of a wallet sees and does. Not there where nothing is billed (C25.2.4)."""
    operations = WalletOperations(database, ids, cursors, changed)
    read: dict[str, Any] = {"tag": "Wallet", "scope": "wallet:read", "rate_class": "read", "method": "GET"}
    write: dict[str, Any] = {"tag": "Wallet", "scope": "wallet:write", "rate_class": "write"}
    return (
        Route(
            path="/v2/wallet",
            handler=operations.read,
            operation_id="getWallet",
            summary="Read what the environment has",
            responses={200: WalletOut},
            errors=("NOT_FOUND",),
            **read,
        ),
        Route(
            method="PATCH",
            path="/v2/wallet",
            handler=operations.patch,
            operation_id="updateWallet",
            summary="Change the balance below which the wallet is low",
            description="A threshold above what is available makes the wallet low at once.",
            body=WalletPatch,
            responses={200: WalletOut},
            errors=("NOT_FOUND",),
            **write,
        ),
        Route(
            path="/v2/wallet/ledger",
            handler=operations.list_entries,
            operation_id=LEDGER,
            summary="List what changed the balance",
            query=LedgerQuery,
            responses={200: LedgerPage},
            **read,
        ),
        Route(
            method="POST",
            path="/v2/wallet/top-ups",
            handler=operations.top_up,
            operation_id="createTopUp",
            summary="Add coins",
            description="In test they are credited at once; in live when the payment under `paymentReference` arrives.",
            body=TopUpCreate,
            responses={201: TopUpOut},
            errors=("NOT_FOUND", "LIMIT_REACHED"),
            idempotency=Idempotency.ACCEPTED,
            creates=True,
            **write,
        ),
        Route(
            path="/v2/wallet/top-ups",
            handler=operations.list_top_ups,
            operation_id="listTopUps",
            summary="List top-ups",
            query=PageQuery,
            responses={200: TopUpPage},
            **read,
        ),
        Route(
            path="/v2/wallet/top-ups/{id}",
            handler=operations.read_top_up,
            load=operations.find_top_up,
            operation_id="getTopUp",
            summary="Read a top-up",
            responses={200: TopUpOut},
            path_ids={"id": TOP_UP},
            **read,
        ),
    )
