"""What the installation's administrator credits to wallets (C24.1)."""

from recado.domain.core.ids import ORGANIZATION
from recado.domain.messages.changes import DeliveriesQueued
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.route import Route, as_modelled
from recado.http.problems.missing import found
from recado.http.routes.billing.wallet_models import CreditOut, WalletCredit, entry_view, wallet_view
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import ADMINISTRATION
from recado.http.wire.reply import Reply
from recado.services.effects.record_events import announce
from recado.storage.access import organizations
from recado.storage.access.organizations import Organization
from recado.storage.billing import grants


def wallet_credit_routes(dependencies: Dependencies) -> tuple[Route, ...]:
    """Credits and adjustments. Not there where nothing is billed (C25.2.4)."""

    async def find(call: Call) -> Organization:
        return found(await organizations.get(dependencies.database, call.path["id"]))

    async def credit(call: Call) -> Reply:
        body: WalletCredit = call.body
        organizations.refuse_on_the_move(call.resource)
        async with dependencies.database.transaction() as connection:
            credited = await grants.grant(
                connection,
                dependencies.ids,
                organization_id=call.resource.id,
                env=body.env,
                coins=body.coins,
                reference=body.reference,
                actor=actor_of(call),
                now=call.now,
            )
        announce(dependencies.changed, DeliveriesQueued(credited.queued))
        shown = {"entry": entry_view(credited.entry), "wallet": wallet_view(credited.wallet)}
        return Reply(201, {**shown, "replayed": credited.replayed})

    return (
        ADMINISTRATION.route(
            "POST /v2/admin/organizations/{id}/wallet-credits", "creditWallet",
            "Credit coins to a wallet, or adjust it down", credit, load=find, path_ids={"id": ORGANIZATION},
            body=WalletCredit, responses={201: CreditOut}, creates=True, examine=as_modelled,
            errors=("PAYMENT_REQUIRED", "CONFLICT", "INVALID_STATE", "LIMIT_REACHED"),
            description="Once for each `reference`. The payment reference of a top-up confirms its payment.",
        ),
    )  # fmt: skip
