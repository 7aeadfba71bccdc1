"""Accounts (C24.2): invited, changed, disabled. The caller holds every scope that the account has before and after."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from recado.domain.access.account import AccountStatus, Role, scopes_of
from recado.domain.access.scopes import PII
from recado.domain.core.errors import Problem
from recado.domain.core.ids import ACCOUNT as PREFIX
from recado.domain.messages.changes import AccountChanged
from recado.http.api.audit import PII_GRANT
from recado.http.api.call import Call
from recado.http.api.paging import PageQuery
from recado.http.api.route import Access, Route
from recado.http.callers.escalation import refuse_change_of_superior, refuse_escalation
from recado.http.callers.principal import ACCOUNT
from recado.http.middleware.authentication import unauthorized
from recado.http.routes.access.account_models import (
    AccountCreate,
    AccountOut,
    AccountPage,
    AccountPatch,
    InviteAcceptance,
    InvitedAccount,
    account_view,
)
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.resource import Resource, each
from recado.http.wire.reply import Reply
from recado.storage.access import accounts, organizations, sessions
from recado.storage.access.accounts import ACCOUNTS, UserAccount
from recado.storage.access.passwords import Passwords
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.connections.changing import changing
from recado.storage.core.connections.postgres import Connection
from recado.storage.core.statements.tables import lock_organization


@dataclass(frozen=True, slots=True)
class AccountOperations:
    """What is particular to accounts: invitations, and who may change whom."""

    accounts: Resource[UserAccount]
    passwords: Passwords

    def examine(self, call: Call) -> None:
        """Raise `Problem` 403 for an account that could do more than the caller."""
        refuse_escalation(call, scopes_of(Role(call.body.role), call.body.extra_scopes))

    async def create(self, call: Call) -> Reply:
        self.examine(call)
        body, role, dependencies = call.body, Role(call.body.role), self.accounts.dependencies
        async with self.accounts.database.transaction() as connection:
            account, token = await accounts.create(
                connection,
                dependencies.ids,
                organization_id=call.principal.organization_id,
                name=body.name,
                email=body.email,
                role=role,
                extra_scopes=set(body.extra_scopes),
                invited_by_id=call.principal.actor_id,
                now=call.now,
                random_bytes=dependencies.random_bytes,
            )
            await self.accounts.note(connection, call, "account.create", account, _granted(account))
            if PII in account.scopes:
                await self.accounts.note(connection, call, PII_GRANT, account)
        return await self.accounts.reply(call, account, 201, once={"inviteToken": token})

    async def patch(self, call: Call) -> Reply:
        changes = call.body.changes()
        async with self._locked(call) as (connection, before):
            wanted = _changed(before, changes)
            added = wanted.scopes - before.scopes
            refuse_change_of_superior(call, before.scopes)
            refuse_escalation(call, added)
            if _is_active_owner(before) and not _is_active_owner(wanted):
                await accounts.refuse_without_owner(connection, before)
            after = await accounts.save(connection, before, wanted, call.now)
            if after is not before:
                details = {"fields": sorted(changes), "scopesAdded": sorted(added), "role": after.role.value}
                await self.accounts.note(connection, call, "account.update", after, details)
                if PII in added:
                    await self.accounts.note(connection, call, PII_GRANT, after)
        self.accounts.tell(after)
        return await self.accounts.reply(call, after)

    async def invite(self, call: Call) -> Reply:
        async with self._locked(call) as (connection, before):
            # The answer also holds the way into that account: a caller who lacks one of its scopes would gain it.
            refuse_change_of_superior(call, before.scopes)
            account, token = await accounts.invite_again(
                connection, before, now=call.now, random_bytes=self.accounts.dependencies.random_bytes
            )
            await self.accounts.note(connection, call, "account.invite", account, _granted(account))
        return await self.accounts.reply(call, account, once={"inviteToken": token})

    async def disable(self, call: Call) -> Reply:
        async with self._locked(call) as (connection, before):
            refuse_change_of_superior(call, before.scopes)
            if _is_active_owner(before):
                await accounts.refuse_without_owner(connection, before)
            after = await accounts.disable(connection, before, call.now)
            if after is not before:
                await sessions.end_of_account(connection, after.id, call.now)
                await self.accounts.note(connection, call, "account.disable", after)
        self.accounts.tell(after)
        return Reply(204)

    async def accept(self, call: Call) -> Reply:
        """Without a credential: the invitation is one. Only a valid one costs the derivation of a password."""
        body, database = call.body, self.accounts.database
        invited = await accounts.invited(database, body.token, call.now)
        if invited is None:
            raise _no_invitation()
        organization = await organizations.get(database, invited.organization_id)
        organizations.refuse_on_the_move(organization)
        if organization is None or organization.suspended:
            raise Problem("ORGANIZATION_SUSPENDED", "The organization is suspended.")
        password_hash = await self.passwords.hash(body.password)
        async with database.transaction() as connection:
            account = await accounts.accept(connection, body.token, password_hash=password_hash, now=call.now)
            if account is None:
                raise _no_invitation()
            actor = AuditPrincipal(ACCOUNT, account.id, ip=call.client_ip, request_id=call.request_id)
            await self.accounts.note(connection, call, "account.accept", account, actor=actor)
        return await self.accounts.reply(call, account)

    @asynccontextmanager
    async def _locked(self, call: Call) -> AsyncIterator[tuple[Connection, UserAccount]]:
        """The organization first, everywhere: two owners who remove each other at once do not wait for one another."""
        found: UserAccount = call.resource
        async with changing(self.accounts.database, self.accounts.tell, found) as connection:
            await lock_organization(connection, found.organization_id)
            yield connection, await self.accounts.hold(connection, call, found)


def _changed(account: UserAccount, changes: dict[str, Any]) -> UserAccount:
    fields = dict(changes)
    if "role" in fields:
        fields["role"] = Role(fields["role"])
    if "extra_scopes" in fields:
        fields["extra_scopes"] = frozenset(fields["extra_scopes"])
    return replace(account, **fields)


def _is_active_owner(account: UserAccount) -> bool:
    return account.role is Role.OWNER and account.status is AccountStatus.ACTIVE


def _granted(account: UserAccount) -> dict[str, Any]:
    return {"role": account.role.value, "extraScopes": sorted(account.extra_scopes)}


def _no_invitation() -> Problem:
    return unauthorized("The invitation is unknown, was used or has expired: ask for a new one.")


def account_resource(dependencies: Dependencies) -> Resource[UserAccount]:
    """People whom the organization lets in."""
    return Resource(
        dependencies=dependencies,
        table=ACCOUNTS,
        path="/v2/accounts/{id}",
        prefix=PREFIX,
        name="account",
        group=Group("Accounts", "accounts:read", "accounts:write", session_only=True),
        out=AccountOut,
        page=AccountPage,
        views=each(account_view),
        tell=lambda account: dependencies.changed(AccountChanged(account.id)),
    )


def account_routes(accounts: Resource[UserAccount], passwords: Passwords) -> tuple[Route, ...]:
    """The operations on accounts."""
    operations = AccountOperations(accounts, passwords)
    return (
        accounts.route(
            "GET /v2/accounts", "listAccounts", "List the organization's accounts",
            accounts.listing(), query=PageQuery,
        ),
        accounts.route(
            "POST /v2/accounts", "createAccount", "Invite a person", operations.create,
            body=AccountCreate, responses={201: InvitedAccount}, errors=("SCOPE_ESCALATION", "ACCOUNT_EMAIL_TAKEN"),
            examine=operations.examine,
            description="The invitation is shown in this answer and never again. It holds for 72 hours.",
        ),
        accounts.route(
            "PATCH /v2/accounts/{id}", "updateAccount", "Change an account's name, role or further scopes",
            operations.patch, body=AccountPatch, errors=("SCOPE_ESCALATION", "CONFLICT"),
        ),
        accounts.route(
            "DELETE /v2/accounts/{id}", "disableAccount", "Disable an account and end its sessions",
            operations.disable, errors=("SCOPE_ESCALATION", "CONFLICT"),
        ),
        accounts.route(
            "POST /v2/accounts/{id}/invite", "inviteAccount",
            "Invite again: after a lost invitation, or to bring back a disabled account", operations.invite,
            responses={200: InvitedAccount}, errors=("SCOPE_ESCALATION", "INVALID_STATE"),
            description="The former invitation and a former password are void.",
        ),
        Group("Accounts", access=Access.PUBLIC).route(
            "POST /v2/accounts/accept-invite", "acceptInvite", "Accept an invitation and choose a password",
            operations.accept, rate_class="login", body=InviteAcceptance, responses={200: AccountOut},
            errors=("UNAUTHORIZED", "ORGANIZATION_SUSPENDED", "SERVICE_UNAVAILABLE"),
            description="An invitation holds once, and for 72 hours.",
        ),
    )  # fmt: skip
