"""`recado keys`: make, list and revoke API keys (C24.4); works while the server runs."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from recado.cli.common import DataDir, Json, print_json, print_table, read_settings, run_async
from recado.cli.errors import CommandError
from recado.cli.opening import chosen_organization, opened
from recado.config.limits import parse_limits_of_credentials
from recado.config.settings import Settings
from recado.domain.access.scopes import ALL_SCOPES, KEY_SCOPES, PII
from recado.domain.core.spelling import closest
from recado.domain.core.timestamps import format_timestamp
from recado.http.routes.access.api_key_models import ClassLimit
from recado.installation import Installation
from recado.services.effects.record_events import key_created
from recado.storage.access import api_keys
from recado.storage.access.api_keys import ApiKey
from recado.storage.access.organizations import ENVIRONMENTS
from recado.storage.core import audit
from recado.storage.core.connections.postgres import Connection

NAME_LIMIT = 80  # characters (C24.4)
PAGE = 200


class Env(StrEnum):
    """The environments of a key."""

    LIVE = "live"
    TEST = "test"


Org = Annotated[
    str | None, typer.Option("--org", metavar="ID", help="Id or name of the organization.", show_default="the oldest")
]


def mount(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(
        help="Make, list and revoke API keys.",
        epilog="Example: recado keys create --env test --scopes all",
        no_args_is_help=True,
    )
    group.command("create", epilog="Example: recado keys create --env test --scopes messages:send,messages:read")(
        create
    )
    group.command("list", epilog="Example: recado keys list --env live")(list_all)
    group.command("revoke", epilog="Example: recado keys revoke key_0aB3cD4e1234567890123")(revoke)
    app.add_typer(group, name="keys")


def create(
    env: Annotated[Env, typer.Option("--env", help="The environment that the key opens.")] = Env.TEST,
    scopes: Annotated[
        str, typer.Option("--scopes", metavar="SCOPES", help="Scopes, separated by commas; all = all a key may hold.")
    ] = "all",
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What the key is called.")] = "Command line",
    org: Org = None,
    unlimited: Annotated[bool, typer.Option("--unlimited", help="No request limits: for load tests.")] = False,
    limits: Annotated[
        str | None,
        typer.Option(
            "--limits",
            metavar="LIMITS",
            help="Request limits of its own, also above the ceiling: write=400/800 is 400 a second, 800 at once.",
            show_default=False,
        ),
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Make a key and print its token, which is shown only now."""
    granted = _scopes(scopes)
    own = _limits(limits) if limits is not None else None
    name = name.strip()
    if not 1 <= len(name) <= NAME_LIMIT or "\x00" in name:
        raise CommandError(f"--name must have 1 to {NAME_LIMIT} characters")
    key, token = run_async(_create(read_settings(data_dir), org, env, name, granted, own, unlimited))
    if as_json:
        print_json({"token": token, "id": key.id, "organizationId": key.organization_id, "env": key.env})
    else:
        print(token)


def list_all(
    env: Annotated[Env | None, typer.Option("--env", help="Only this environment.", show_default=False)] = None,
    org: Org = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """List the keys of an organization, newest first; never their tokens."""
    keys = run_async(_list(read_settings(data_dir), org, [env] if env else list(ENVIRONMENTS)))
    if as_json:
        print_json({"items": [_shown(key, status) for key, status in keys]})
        return
    print_table(
        ("id", "env", "status", "begins with", "name", "last used"),
        [(key.id, key.env, status, key.prefix, key.name, _moment(key)) for key, status in keys],
        empty="no key: make one with 'recado keys create'",
    )


def revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="Id of the key, as 'recado keys list' shows it.")],
    org: Org = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """End a key. A running server refuses it at the latest after 5 seconds."""
    key = run_async(_revoke(read_settings(data_dir), org, key_id))
    if as_json:
        print_json(_shown(key, "revoked"))
    else:
        print(f"revoked {key.id} ({key.name})")


async def _create(
    settings: Settings,
    org: str | None,
    env: str,
    name: str,
    scopes: frozenset[str],
    limits: Mapping[str, Any] | None,
    unlimited: bool,
) -> tuple[ApiKey, str]:
    async with opened(settings, may_make=True) as installation:
        organization = await chosen_organization(installation, org)
        async with installation.database.transaction() as connection:
            await api_keys.refuse_beyond_limit(connection, organization.id, env, installation.clock.now())
            key, token = await api_keys.issue_key(
                connection,
                installation.ids,
                organization_id=organization.id,
                env=env,
                name=name,
                scopes=scopes,
                random_bytes=installation.random_bytes,
                rate_limits=limits,
                unlimited=unlimited,
            )
            details = {"scopes": sorted(scopes), "unlimited": unlimited, **({"rateLimits": limits} if limits else {})}
            await _record(connection, installation, key, "api_key.create", details)
            if PII in scopes:
                await _record(connection, installation, key, "pii_full.grant")
            await key_created(connection, installation.ids, key)  # a running server delivers it
        return key, token


async def _list(settings: Settings, org: str | None, envs: list[str]) -> list[tuple[ApiKey, str]]:
    async with opened(settings) as installation:
        organization = await chosen_organization(installation, org)
        keys: list[ApiKey] = []
        for env in envs:
            while True:
                skip = sum(key.env == env for key in keys)
                page = await api_keys.list_page(installation.database, organization.id, env, limit=PAGE, skip=skip)
                keys += page.items
                if len(page.items) < PAGE:
                    break
        now = installation.clock.now()
        return [(key, key.status(now)) for key in sorted(keys, key=lambda key: key.id, reverse=True)]


async def _revoke(settings: Settings, org: str | None, key_id: str) -> ApiKey:
    async with opened(settings) as installation:
        organization = await chosen_organization(installation, org)
        async with installation.database.transaction() as connection:
            for env in ENVIRONMENTS:
                key = await api_keys.revoke(connection, organization.id, env, key_id, installation.clock.now())
                if key is not None:
                    await _record(connection, installation, key, "api_key.revoke")
                    return key
        raise CommandError(f"{organization.name} has no such key to revoke: 'recado keys list' shows them")


async def _record(
    connection: Connection, installation: Installation, key: ApiKey, action: str, details: dict[str, Any] | None = None
) -> None:
    await audit.write(
        connection,
        installation.ids,
        audit.SYSTEM,
        action,
        organization_id=key.organization_id,
        env=key.env,
        target_id=key.id,
        details=details,
    )


def _scopes(text: str) -> frozenset[str]:
    if text.strip() == "all":
        return KEY_SCOPES
    wanted = frozenset(scope.strip() for scope in text.split(",") if scope.strip())
    if unknown := sorted(wanted - KEY_SCOPES):
        meant = None if unknown[0] in ALL_SCOPES else closest(unknown[0], KEY_SCOPES)
        choose = f"choose among {', '.join(sorted(KEY_SCOPES))}" if meant is None else f"did you mean {meant}?"
        raise CommandError(f"no key may hold {', '.join(unknown)}: {choose}")
    if not wanted:
        raise CommandError("--scopes names no scope: give some, separated by commas, or all")
    return wanted


def _limits(text: str) -> Mapping[str, Any]:
    """The overrides by class in the form in which they are stored (C24.4)."""
    try:
        given = parse_limits_of_credentials(text)
        own = {name: ClassLimit(per_second=each.refill, capacity=each.capacity) for name, each in given.items()}
    except ValidationError:
        raise CommandError(
            "--limits: a class takes more than 0.01 and at most 100,000 a second, 1,000,000 at once"
        ) from None
    except ValueError as error:
        raise CommandError(f"--limits: {error}") from None
    if not own:
        raise CommandError("--limits: it names no class: write, for example, send=20000/40000")
    return {name: limit.model_dump(by_alias=True) for name, limit in own.items()}


def _moment(key: ApiKey) -> str:
    return format_timestamp(key.last_used_at) if key.last_used_at else "never"


def _shown(key: ApiKey, status: str) -> dict[str, Any]:
    optional = {
        "rateLimits": key.rate_limits,
        "expiresAt": key.expires_at,
        "lastUsedAt": key.last_used_at,
        "rotatedAt": key.rotated_at,
    }
    return {
        "id": key.id,
        "organizationId": key.organization_id,
        "env": key.env,
        "name": key.name,
        "prefix": key.prefix,
        "scopes": sorted(key.scopes),
        "status": status,
        "unlimited": key.unlimited,
        "createdAt": key.created_at,
        **{name: value for name, value in optional.items() if value is not None},
    }
