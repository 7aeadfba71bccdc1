"""`recado wallet`: credit a wallet or adjust it down (C25, C35); works while the server runs."""

from typing import Annotated

import typer

from recado.cli.common import DataDir, Json, print_json, read_settings, run_async
from recado.cli.errors import CommandError
from recado.cli.keys import Env, Org
from recado.cli.opening import chosen_organization, opened
from recado.config.settings import Settings
from recado.domain.billing.top_up import MOST_COINS
from recado.domain.core.counting import counted
from recado.storage.access.organizations import Organization
from recado.storage.billing import grants
from recado.storage.billing.ledger import Credited
from recado.storage.core import audit

REFERENCE_LIMIT = 128  # characters


def mount(app: typer.Typer) -> None:
    """Add the group of commands."""
    example = "Example: recado wallet credit --env live --coins 1000000 --reference invoice-17"
    group = typer.Typer(help="Credit wallets.", epilog=example, no_args_is_help=True)
    group.command("credit", epilog=example)(credit)
    app.add_typer(group, name="wallet")


def credit(
    env: Annotated[Env, typer.Option("--env", help="The environment of the wallet.")],
    coins: Annotated[
        int, typer.Option("--coins", metavar="N", help="Coins to add; a negative number takes them away.")
    ],
    reference: Annotated[
        str,
        typer.Option("--reference", metavar="TEXT", help="What it is for. Repeated, the same reference does nothing."),
    ],
    org: Org = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Add coins to a wallet, or take some away. 10,000 coins are BRL 1.00.

    The payment reference of a top-up confirms its payment.
    """
    reference = reference.strip()
    if not 1 <= len(reference) <= REFERENCE_LIMIT or "\x00" in reference:
        raise CommandError(f"--reference must have 1 to {REFERENCE_LIMIT} characters")
    if coins == 0 or abs(coins) > MOST_COINS:
        raise CommandError(f"--coins must be a number from -{MOST_COINS} to {MOST_COINS}, and not 0")
    settings = read_settings(data_dir)
    if not settings.billing_enabled:
        raise CommandError("nothing is billed here: there are wallets only with RECADO_BILLING_ENABLED=true")
    done, organization = run_async(_credit(settings, org, env, coins, reference))
    entry, wallet = done.entry, done.wallet
    if as_json:
        print_json(
            {
                "organizationId": wallet.organization_id,
                "organizationName": organization.name,
                "env": wallet.env,
                "walletId": wallet.id,
                "entryId": entry.id,
                "kind": entry.kind,
                "coins": entry.coins,
                "replayed": done.replayed,
                "status": wallet.status.value,
                "balanceCoins": wallet.balance_coins,
                "heldCoins": wallet.held_coins,
                "availableCoins": wallet.available_coins,
            }
        )
        return
    before = "was credited before" if abs(entry.coins) == 1 else "were credited before"
    said = before if done.replayed else "credited" if coins > 0 else "taken away"
    whose = f"{organization.name} ({organization.id}) in {wallet.env}"
    balance = f"balance {wallet.balance_coins:,}, available {wallet.available_coins:,}"
    print(f"{counted(abs(entry.coins), 'coin')} {said} for {whose}; {balance}")


async def _credit(
    settings: Settings, org: str | None, env: str, coins: int, reference: str
) -> tuple[Credited, Organization]:
    async with opened(settings) as installation:
        organization = await chosen_organization(installation, org)
        async with installation.database.transaction() as connection:
            done = await grants.grant(
                connection,
                installation.ids,
                organization_id=organization.id,
                env=str(env),
                coins=coins,
                reference=reference,
                actor=audit.SYSTEM,
                now=installation.clock.now(),
            )
        return done, organization
