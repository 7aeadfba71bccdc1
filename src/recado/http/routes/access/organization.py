"""The organization: its settings, and what the installation's administrator does with organizations (C24.1)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from recado.domain.core.ids import ORGANIZATION
from recado.domain.messages.changes import OrganizationChanged
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.route import Route, as_modelled
from recado.http.problems.missing import found
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
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import ADMINISTRATION, Group
from recado.http.routes.core.resource import Resource, each
from recado.http.wire.reply import Reply
from recado.storage.access import organizations
from recado.storage.access.organizations import ORGANIZATIONS, Organization
from recado.storage.billing import price_overrides
from recado.storage.billing.price_overrides import Override
from recado.storage.core.connections.postgres import Connection
from recado.storage.push import messages as push_messages


@dataclass(frozen=True, slots=True)
class OrganizationOperations:
    """The handlers."""

    organizations: Resource[Organization]

    async def patch(self, call: Call) -> Reply:
        return await self.organizations.reply(call, await self._change(call, _with_settings))

    async def find(self, call: Call) -> Organization:
        """The organization that the administrator names in the path."""
        return found(await organizations.get(self.organizations.database, call.path["id"]))

    async def admin_patch(self, call: Call) -> Reply:
        after = await self._change(call, _with_decisions)
        agreed = await price_overrides.in_force(self.organizations.database, after.id, call.now)
        body = {**organization_view(after), "priceOverrides": overrides_view(agreed)}
        return Reply(200, body, revision=after.revision)

    async def admin_create(self, call: Call) -> Reply:
        dependencies = self.organizations.dependencies
        async with self.organizations.database.transaction() as connection:
            new = await organizations.create_organization(
                connection,
                dependencies.ids,
                name=call.body.name,
                now=call.now,
                random_bytes=dependencies.random_bytes,
                actor=actor_of(call),
                owner_email=call.body.owner_email,
                key_ring=dependencies.keys,
            )
            await self.organizations.note(connection, call, "organization.create", new.organization)
        keys = {env: {**key_view(key, call.now), "token": token} for env, (key, token) in new.keys.items()}
        body = {**organization_view(new.organization), "keys": keys}
        if new.owner is not None:
            body["inviteToken"] = new.owner[1]
        return Reply(201, body, revision=new.organization.revision)

    async def _change(
        self, call: Call, apply: Callable[[Organization, dict[str, Any], Call], Organization]
    ) -> Organization:
        changes = call.body.changes()
        async with self.organizations.locked(call) as (connection, before):
            wanted = apply(before, changes, call)
            if "price_overrides" in changes and await self._agree(connection, before, changes, call):
                wanted = replace(wanted, updated_at=call.now)  # the prices stand in a table of their own
            after = await ORGANIZATIONS.save(connection, before, wanted, call.now)
            if before.held_since is not None and after.held_since is None:
                quiet_until = after.quiet_hours_end(call.now)
                await push_messages.make_up(connection, after.id, before.held_since, call.now, quiet_until)
            if after is not before:
                details = {"fields": call.body.named()}
                await self.organizations.note(connection, call, "organization.update", after, details)
        if after is not before:
            self.organizations.tell(after)
        return after

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
    organizations.refuse_on_the_move(organization)
    if "status" in changes:
        organization = organizations.with_status(organization, changes["status"], call.now)
    if "dedicated_sender" in changes:
        organization = replace(organization, dedicated_sender=changes["dedicated_sender"])
    return organization


def organization_routes(dependencies: Dependencies) -> tuple[Route, ...]:
    """A caller has one organization; the administrator has all of them."""
    one = Resource(
        dependencies=dependencies,
        table=ORGANIZATIONS,
        path="/v2/organization",
        prefix=ORGANIZATION,
        name="organization",
        group=Group("Organization", "org:read", "org:write"),
        out=OrganizationOut,
        views=each(organization_view),
        tell=lambda organization: dependencies.changed(OrganizationChanged(organization.id)),
    )
    operations = OrganizationOperations(one)
    return (
        one.route("GET /v2/organization", "getOrganization", "Read the organization's settings", one.read),
        one.route(
            "PATCH /v2/organization", "updateOrganization", "Change the organization's settings", operations.patch,
            body=OrganizationPatch,
            description="The settings hold for both environments. An absent field stays as it is.",
        ),
        ADMINISTRATION.route(
            "POST /v2/admin/organizations", "createOrganization", "Create an organization", operations.admin_create,
            body=OrganizationCreate, responses={201: NewOrganizationOut}, errors=("ACCOUNT_EMAIL_TAKEN",),
            versioned=True, creates=True, examine=as_modelled,
            description="It has keys, a sandbox number and an invited owner. Their tokens are shown once.",
        ),
        ADMINISTRATION.route(
            "PATCH /v2/admin/organizations/{id}", "administerOrganization",
            "Suspend, release or equip an organization", operations.admin_patch,
            load=operations.find, path_ids={"id": ORGANIZATION},
            body=OrganizationAdminPatch, responses={200: AdministeredOrganizationOut}, versioned=True,
            description="Its status, its sender of its own and its agreed prices; what is left out stays.",
        ),
    )  # fmt: skip
