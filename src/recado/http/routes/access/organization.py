"""The organization: its settings, and what the installation's administrator does with organizations (C24.1)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from recado.domain.core.errors import not_found
from recado.domain.core.ids import ORGANIZATION, IdSource
from recado.domain.messages.changes import OnChange, OrganizationChanged
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.route import Access, Route
from recado.http.routes.access.api_key_models import key_view
from recado.http.routes.access.organization_models import (
    AdministeredOrganizationOut,
    NewOrganizationOut,
    OrganizationAdminPatch,
    OrganizationCreate,
    OrganizationOut,
    OrganizationPatch,
    organization_view,
    overrides_view,
)
from recado.http.wire.reply import Reply
from recado.storage.access import organizations
from recado.storage.access.organizations import Organization
from recado.storage.billing import price_overrides
from recado.storage.billing.price_overrides import Override
from recado.storage.core import audit
from recado.storage.core.changing import changing
from recado.storage.core.postgres import Connection, Database


class OrganizationOperations:
    """The handlers."""

    def __init__(
        self, database: Database, ids: IdSource, random_bytes: Callable[[int], bytes], changed: OnChange
    ) -> None:
        self._database = database
        self._ids = ids
        self._random_bytes = random_bytes
        self._changed = changed

    async def read(self, call: Call) -> Reply:
        organization = await organizations.get(self._database, call.principal.organization_id)
        if organization is None:
            raise not_found()
        return _shown(organization)

    async def patch(self, call: Call) -> Reply:
        return await self._change(call, call.principal.organization_id, call.body.changes(), _with_settings)

    async def find(self, call: Call) -> Organization:
        """The organization that the administrator names in the path."""
        organization = await organizations.get(self._database, call.path["id"])
        if organization is None:
            raise not_found()
        return organization

    async def admin_patch(self, call: Call) -> Reply:
        reply = await self._change(call, call.path["id"], call.body.changes(), _with_decisions)
        agreed = await price_overrides.in_force(self._database, call.path["id"], call.now)
        return Reply(200, {**reply.body, "priceOverrides": overrides_view(agreed)}, revision=reply.revision)

    async def admin_create(self, call: Call) -> Reply:
        async with self._database.transaction() as connection:
            new = await organizations.create_organization(
                connection,
                self._ids,
                name=call.body.name,
                now=call.now,
                random_bytes=self._random_bytes,
                actor=actor_of(call),
                owner_email=call.body.owner_email,
            )
            await audit.write(
                connection,
                self._ids,
                actor_of(call),
                "organization.create",
                organization_id=new.organization.id,
                env=None,
                target_id=new.organization.id,
            )
        keys = {env: {**key_view(key, call.now), "token": token} for env, (key, token) in new.keys.items()}
        body = {**organization_view(new.organization), "keys": keys}
        if new.owner is not None:
            body["inviteToken"] = new.owner[1]
        return Reply(201, body, revision=new.organization.revision)

    async def _change(
        self,
        call: Call,
        organization_id: str,
        changes: dict[str, Any],
        apply: Callable[[Organization, dict[str, Any], Call], Organization],
    ) -> Reply:
        change = OrganizationChanged(organization_id)
        async with changing(self._database, self._changed, change) as connection:
            before = await organizations.get_locked(connection, organization_id)
            if before is None:
                raise not_found()
            call.check_revision(before.revision)
            wanted = apply(before, changes, call)
            if "price_overrides" in changes and await self._agree(connection, before, changes, call):
                wanted = replace(wanted, updated_at=call.now)  # the prices stand in a table of their own
            after = await organizations.save(connection, before, wanted, call.now)
            if after is not before:
                await audit.write(
                    connection,
                    self._ids,
                    actor_of(call),
                    "organization.update",
                    organization_id=after.id,
                    env=None,
                    target_id=after.id,
                    details={"fields": call.body.named()},
                )
        if after is not before:
            self._changed(change)
        return _shown(after)

    async def _agree(
        self, connection: Connection, organization: Organization, changes: dict[str, Any], call: Call
    ) -> bool:
        """Write other prices than are in force; False when they are the same."""
        agreed = {
            kind: Override(given.coins, given.international_coins)
            for kind, given in (changes["price_overrides"] or {}).items()
            if given.coins is not None or given.international_coins is not None
        }
        if agreed == await price_overrides.in_force(connection, organization.id, call.now):
            return False
        await price_overrides.replace_all(connection, organization.id, agreed, call.now)
        return True


def _shown(organization: Organization) -> Reply:
    return Reply(200, organization_view(organization), revision=organization.revision)


def _with_settings(organization: Organization, changes: dict[str, Any], call: Call) -> Organization:
    fields = dict(changes)
    if "quiet_hours" in fields:
        quiet = fields.pop("quiet_hours")
        fields["quiet_start"], fields["quiet_end"] = quiet.times() if quiet else (None, None)
    for keywords in ("opt_out_keywords", "opt_in_keywords"):
        if keywords in fields:
            fields[keywords] = tuple(fields[keywords])
    return replace(organization, **fields)


def _with_decisions(organization: Organization, changes: dict[str, Any], call: Call) -> Organization:
    if "status" in changes:
        organization = organizations.with_status(organization, changes["status"], call.now)
    if "dedicated_sender" in changes:
        organization = replace(organization, dedicated_sender=changes["dedicated_sender"])
    return organization


def organization_routes(
    *, database: Database, ids: IdSource, random_bytes: Callable[[int], bytes], changed: OnChange
) -> tuple[Route, ...]:
    """`random_bytes`: unpredictable ones, for the tokens of a new organization's keys."""
    operations = OrganizationOperations(database, ids, random_bytes, changed)
    return (
        Route(
            method="GET",
            path="/v2/organization",
            handler=operations.read,
            operation_id="getOrganization",
            summary="Read the organization's settings",
            tag="Organization",
            scope="org:read",
            rate_class="read",
            responses={200: OrganizationOut},
            versioned=True,
        ),
        Route(
            method="PATCH",
            path="/v2/organization",
            handler=operations.patch,
            operation_id="updateOrganization",
            summary="Change the organization's settings",
            description="The settings hold for both environments. An absent field stays as it is.",
            tag="Organization",
            scope="org:write",
            rate_class="write",
            body=OrganizationPatch,
            responses={200: OrganizationOut},
            versioned=True,
        ),
        Route(
            method="POST",
            path="/v2/admin/organizations",
            handler=operations.admin_create,
            operation_id="createOrganization",
            summary="Create an organization",
            description="It has keys, a sandbox number and an invited owner. Their tokens are shown once.",
            tag="Administration",
            access=Access.ADMIN,
            body=OrganizationCreate,
            responses={201: NewOrganizationOut},
            errors=("ACCOUNT_EMAIL_TAKEN",),
            versioned=True,
            creates=True,
        ),
        Route(
            method="PATCH",
            path="/v2/admin/organizations/{id}",
            handler=operations.admin_patch,
            load=operations.find,
            operation_id="administerOrganization",
            summary="Suspend, release or equip an organization",
            tag="Administration",
            access=Access.ADMIN,
            body=OrganizationAdminPatch,
            responses={200: AdministeredOrganizationOut},
            versioned=True,
            path_ids={"id": ORGANIZATION},
        ),
    )
