"""`recado account`: invite people, also the first one of an organization (C24.2, C35); works while the server runs."""

import re
from typing import Annotated

import typer

from recado.cli.common import DataDir, Json, print_json, read_settings, run_async
from recado.cli.errors import CommandError
from recado.cli.keys import Org
from recado.cli.opening import chosen_organization, opened
from recado.config.settings import Settings
from recado.domain.access.account import Role
from recado.domain.core.mail_domains import ADDRESS_FORM
from recado.storage.access import accounts
from recado.storage.access.accounts import UserAccount
from recado.storage.core import audit

NAME_LIMIT = 120  # characters
EMAIL_LIMIT = 254
EXAMPLE = "Example: recado account create --email ana@example.com --name 'Ana Souza' --role owner"

_EMAIL = re.compile(ADDRESS_FORM).fullmatch


def mount(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(help="Invite people who sign in.", epilog=EXAMPLE, no_args_is_help=True)
    group.command("create", epilog=EXAMPLE)(create)
    app.add_typer(group, name="account")


def create(
    email: Annotated[str, typer.Option("--email", metavar="EMAIL", help="The person's address, used to sign in.")],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The person's name.")] = "Owner",
    role: Annotated[Role, typer.Option("--role", help="What the account may do.")] = Role.OWNER,
    org: Org = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Make an account and print its invitation, with which the person chooses a password; it is shown only now."""
    email = checked_email(email, "--email")
    name = name.strip()
    if not 1 <= len(name) <= NAME_LIMIT or "\x00" in name:
        raise CommandError(f"--name must have 1 to {NAME_LIMIT} characters")
    account, token = run_async(_create(read_settings(data_dir), org, email, name, role))
    if as_json:
        print_json({"id": account.id, "organizationId": account.organization_id, "inviteToken": token})
    else:
        print(account.id)
        print_invitation(account, token)


def checked_email(text: str, option: str) -> str:
    """Return the address; CommandError when it has no such form."""
    email = text.strip()
    if len(email) > EMAIL_LIMIT or _EMAIL(email) is None or "\x00" in email:
        raise CommandError(f"{option} must be an e-mail address, such as ana@example.com")
    return email


def print_invitation(account: UserAccount, token: str) -> None:
    """Tell how the invited person goes on."""
    print(f"{account.email} is invited for 72 hours: POST /v2/accounts/accept-invite with a password and this token,")
    print("which is shown only now:")
    print(f"  {token}")


async def _create(settings: Settings, org: str | None, email: str, name: str, role: Role) -> tuple[UserAccount, str]:
    async with opened(settings) as installation:
        organization = await chosen_organization(installation, org)
        async with installation.database.transaction() as connection:
            account, token = await accounts.create(
                connection,
                installation.ids,
                organization_id=organization.id,
                name=name,
                email=email,
                role=role,
                now=installation.clock.now(),
                random_bytes=installation.random_bytes,
            )
            for action in ("account.create", *(("pii_full.grant",) if "pii:full" in account.scopes else ())):
                await audit.write(
                    connection,
                    installation.ids,
                    audit.SYSTEM,
                    action,
                    organization_id=organization.id,
                    env=None,
                    target_id=account.id,
                    details={"role": role.value} if action == "account.create" else None,
                )
        return account, token
