"""`recado org`: make and list organizations."""

from typing import Annotated, Any

import typer

from recado.cli.accounts import checked_email, print_invitation
from recado.cli.common import DataDir, Json, print_json, print_table, read_settings, run_async
from recado.cli.errors import CommandError
from recado.cli.opening import opened
from recado.config.settings import Settings
from recado.domain.core.timestamps import format_timestamp
from recado.storage.access.organizations import NewOrganization, Organization, all_organizations, create_organization
from recado.storage.core import audit

NAME_LIMIT = 120  # characters


def mount(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(
        help="Make and list organizations.",
        epilog="Example: recado org create --name 'Padaria Central'",
        no_args_is_help=True,
    )
    group.command("create", epilog="Example: recado org create --name 'Padaria Central' --owner-email ana@example.com")(
        create
    )
    group.command("list", epilog="Example: recado org list")(list_all)
    app.add_typer(group, name="org")


def create(
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What the organization is called.")],
    owner_email: Annotated[
        str | None,
        typer.Option(
            "--owner-email", metavar="EMAIL", help="Whom to invite as its owner; without, nobody can sign in to it yet."
        ),
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Make an organization, with a key for each environment and a connected sandbox number."""
    name = name.strip()
    if not 1 <= len(name) <= NAME_LIMIT or "\x00" in name:
        raise CommandError(f"--name must have 1 to {NAME_LIMIT} characters")
    if owner_email is not None:
        owner_email = checked_email(owner_email, "--owner-email")
    made = run_async(_create(read_settings(data_dir), name, owner_email))
    if as_json:
        keys = {env: {"id": key.id, "token": token} for env, (key, token) in made.keys.items()}
        invited = {"accountId": made.owner[0].id, "inviteToken": made.owner[1]} if made.owner else {}
        print_json({**_shown(made.organization), "keys": keys, "numberId": made.number.id, **invited})
        return
    print(f"{made.organization.id}  {made.organization.name}")
    print("These keys are shown only now:")
    for env, (_, token) in made.keys.items():
        print(f"  {env}  {token}")
    if made.owner is not None:
        print_invitation(*made.owner)


def list_all(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the organizations, oldest first."""
    known = run_async(_list(read_settings(data_dir)))
    if as_json:
        print_json({"items": [_shown(each) for each in known]})
        return
    print_table(
        ("id", "name", "status", "created"),
        [(each.id, each.name, each.status, format_timestamp(each.created_at)) for each in known],
        empty="no organization yet: make one with 'recado org create --name NAME'",
    )


async def _create(settings: Settings, name: str, owner_email: str | None) -> NewOrganization:
    async with opened(settings, may_make=True) as installation, installation.database.transaction() as connection:
        made = await create_organization(
            connection,
            installation.ids,
            name=name,
            now=installation.clock.now(),
            random_bytes=installation.random_bytes,
            owner_email=owner_email,
            key_ring=installation.key_ring,
        )
        await audit.write(
            connection,
            installation.ids,
            audit.SYSTEM,
            "organization.create",
            organization_id=made.organization.id,
            env=None,
            target_id=made.organization.id,
        )
        return made


async def _list(settings: Settings) -> list[Organization]:
    async with opened(settings) as installation:
        return await all_organizations(installation.database)


def _shown(organization: Organization) -> dict[str, Any]:
    return {
        "id": organization.id,
        "name": organization.name,
        "status": organization.status,
        "createdAt": organization.created_at,
    }
