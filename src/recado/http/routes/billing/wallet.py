"""The wallet of an environment: balance, threshold, ledger and top-ups (C25.1)."""

from dataclasses import dataclass
from typing import Any

from recado.domain.core.errors import FieldError, validation_error
from recado.domain.core.ids import LEDGER_ENTRY, TOP_UP
from recado.domain.messages.changes import DeliveriesQueued
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.http.api.audit import record
from recado.http.api.call import Call
from recado.http.api.paging import PageQuery, items_of
from recado.http.api.route import Route
from recado.http.problems.missing import found
from recado.http.routes.billing.wallet_models import (
    WALLET,
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
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.lists import listed
from recado.http.wire.reply import Reply
from recado.services.effects.record_events import announce
from recado.storage.billing import ledger, top_ups
from recado.storage.billing.top_ups import TopUp

LEDGER = "listLedger"
PAGES = f"{LEDGER} by position"


@dataclass(frozen=True, slots=True)
class WalletOperations:
    """The handlers."""

    dependencies: Dependencies

    async def read(self, call: Call) -> Reply:
        principal = call.principal
        wallet = found(await ledger.get(self.dependencies.database, principal.organization_id, principal.env))
        return Reply(200, wallet_view(wallet))

    async def patch(self, call: Call) -> Reply:
        principal, changes = call.principal, call.body.changes()
        if "low_balance_threshold_coins" not in changes:
            return await self.read(call)
        coins = changes["low_balance_threshold_coins"]
        async with self.dependencies.database.transaction() as connection:
            before, after, queued = await ledger.set_threshold(
                connection, self.dependencies.ids, principal.organization_id, principal.env, coins, call.now
            )
            if after is not before:
                details = {"lowBalanceThresholdCoins": coins}
                await record(connection, self.dependencies.ids, call, "wallet.update", after.id, details)
        announce(self.dependencies.changed, DeliveriesQueued(queued))
        return Reply(200, wallet_view(after))

    async def list_entries(self, call: Call) -> Reply:
        query: LedgerQuery = call.query
        period = None if query.from_ is None and query.to is None else query.ids(LEDGER_ENTRY)
        after_page = self.dependencies.cursors.read(call, PAGES)
        entries = await ledger.list_page(
            self.dependencies.database,
            call.principal.organization_id,
            call.principal.env,
            period=period,
            before_position=None if after_page is None else after_page[0],
            kind=query.kind,
            message_id=query.message_id,
            limit=query.limit + 1,
        )
        items = items_of(call, entries, entry_view)
        return Reply(200, await self.dependencies.cursors.page(call, PAGES, items, lambda entry: [entry.position]))

    def examine(self, call: Call) -> int:
        """How much the body adds. Raises `Problem` 422."""
        return _given(call.body, call.principal.env)

    async def top_up(self, call: Call) -> Reply:
        principal, amount = call.principal, self.examine(call)
        place: dict[str, Any] = {
            "organization_id": principal.organization_id,
            "env": principal.env,
            "created_by_id": principal.actor_id,
            "now": call.now,
        }
        queued: tuple[SubscriptionKey, ...] = ()
        async with self.dependencies.database.transaction() as connection:
            if principal.env == "test":
                made, credited = await top_ups.create_paid(connection, self.dependencies.ids, coins=amount, **place)
                queued = credited.queued
            else:
                made = await top_ups.create_pending(connection, self.dependencies.ids, amount_cents=amount, **place)
            await record(connection, self.dependencies.ids, call, "wallet.top_up", made.id, {"coins": made.coins})
        announce(self.dependencies.changed, DeliveriesQueued(queued))
        return Reply(201, top_up_view(made))

    async def list_top_ups(self, call: Call) -> Reply:
        principal, query = call.principal, call.query
        page = await top_ups.list_page(
            self.dependencies.database.page(query.skip),
            principal.organization_id,
            principal.env,
            limit=query.limit,
            skip=query.skip,
        )
        return await listed(page, top_up_view)

    async def find_top_up(self, call: Call) -> TopUp:
        principal = call.principal
        database = self.dependencies.database
        return found(await top_ups.get(database, principal.organization_id, principal.env, call.path["id"]))

    async def read_top_up(self, call: Call) -> Reply:
        return Reply(200, top_up_view(call.resource))


def _given(body: TopUpCreate, env: str) -> int:
    """What the environment takes: coins in test, cents in live."""
    name, given = ("coins", body.coins) if env == "test" else ("amountCents", body.amount_cents)
    if given is None:
        raise validation_error([FieldError(f"/{name}", "REQUIRED", f"is required in {env}")])
    return given


def wallet_routes(dependencies: Dependencies) -> tuple[Route, ...]:
    """What the owner of a wallet sees and does. Not there where nothing is billed (C25.2.4)."""
    operations = WalletOperations(dependencies)
    return (
        WALLET.route(
            "GET /v2/wallet", "getWallet", "Read what the environment has", operations.read,
            responses={200: WalletOut}, errors=("NOT_FOUND",),
        ),
        WALLET.route(
            "PATCH /v2/wallet", "updateWallet", "Change the balance below which the wallet is low", operations.patch,
            body=WalletPatch, responses={200: WalletOut}, errors=("NOT_FOUND",),
            description="A threshold above what is available makes the wallet low at once.",
        ),
        WALLET.route(
            "GET /v2/wallet/ledger", LEDGER, "List what changed the balance", operations.list_entries,
            query=LedgerQuery, responses={200: LedgerPage},
        ),
        WALLET.route(
            "POST /v2/wallet/top-ups", "createTopUp", "Add coins", operations.top_up,
            body=TopUpCreate, responses={201: TopUpOut}, errors=("NOT_FOUND", "LIMIT_REACHED"), creates=True,
            examine=operations.examine,
            description="In test they are credited at once; in live when the payment under `paymentReference` arrives.",
        ),
        WALLET.route(
            "GET /v2/wallet/top-ups", "listTopUps", "List top-ups", operations.list_top_ups,
            query=PageQuery, responses={200: TopUpPage},
        ),
        WALLET.route(
            "GET /v2/wallet/top-ups/{id}", "getTopUp", "Read a top-up", operations.read_top_up,
            responses={200: TopUpOut}, load=operations.find_top_up, path_ids={"id": TOP_UP},
        ),
    )  # fmt: skip
