"""Signing in and out (C24.3). A refusal does not tell whether an account has the address."""

from dataclasses import dataclass

from recado.domain.access.account import AccountStatus
from recado.domain.core.errors import Unavailable
from recado.domain.messages.changes import AccountChanged
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.route import Access, Route
from recado.http.callers.principal import ACCOUNT
from recado.http.middleware.authentication import bearer_token, unauthorized
from recado.http.routes.access.account_models import SessionOut, SignIn, account_view
from recado.http.routes.core.resource import Resource
from recado.http.wire.reply import Reply
from recado.storage.access import accounts, organizations, sessions
from recado.storage.access.accounts import UserAccount
from recado.storage.access.passwords import Passwords
from recado.storage.access.sessions import OpenedSession
from recado.storage.core import audit
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.connections.changing import changing


@dataclass(frozen=True, slots=True)
class SessionOperations:
    """The handlers."""

    accounts: Resource[UserAccount]
    passwords: Passwords

    async def sign_in(self, call: Call) -> Reply:
        email, password = call.body.email, call.body.password
        await sessions.begin_attempt(self.accounts.database, email, call.now)
        account = await accounts.by_email(self.accounts.database, email)
        active = account is not None and account.status is AccountStatus.ACTIVE
        try:
            right = await self.passwords.check(password, account.password_hash if account and active else None)
            if account is not None and right:
                database, owner = self.accounts.database, account.organization_id
                organizations.refuse_on_the_move(await organizations.get(database, owner))
        except Unavailable:
            await sessions.withdraw_attempt(self.accounts.database, email)
            raise
        opened = await self._open(call, account) if account is not None and right else None
        if opened is None:
            await self._refused(call, email, account)
            raise unauthorized("The e-mail address or the password is wrong.", "INVALID_LOGIN")
        body = {
            "tokens": opened.tokens,
            "account": account_view(opened.account),
            "scopes": sorted(opened.account.scopes),
            "expiresAt": opened.expires_at,
        }
        return Reply(201, body)

    async def sign_out(self, call: Call) -> Reply:
        principal = call.principal
        token = bearer_token(call.headers.get("Authorization"))
        changed, ended = self.accounts.dependencies.changed, AccountChanged(principal.actor_id)
        async with changing(self.accounts.database, changed, ended) as connection:
            await sessions.end(connection, token, call.now)
            await audit.write(
                connection,
                self.accounts.dependencies.ids,
                actor_of(call),
                "session.end",
                organization_id=principal.organization_id,
                env=None,
                target_id=principal.actor_id,
            )
        changed(ended)
        return Reply(204)

    async def _open(self, call: Call, account: UserAccount) -> OpenedSession | None:
        actor = AuditPrincipal(ACCOUNT, account.id, ip=call.client_ip, request_id=call.request_id)
        dependencies = self.accounts.dependencies
        async with self.accounts.database.transaction() as connection:
            opened = await sessions.open_session(
                connection, dependencies.ids, account, now=call.now, random_bytes=dependencies.random_bytes
            )
            if opened is not None:
                await self.accounts.note(connection, call, "session.create", account, actor=actor)
        return opened

    async def _refused(self, call: Call, email: str, account: UserAccount | None) -> None:
        """One commit either way, so that neither the answer nor its time tells whether there is such an account."""
        actor = AuditPrincipal(audit.SYSTEM.type, audit.SYSTEM.id, ip=call.client_ip, request_id=call.request_id)
        async with self.accounts.database.transaction() as connection:
            await sessions.settle_attempt(connection, email, call.now)
            if account is not None:
                await self.accounts.note(connection, call, "session.refuse", account, actor=actor)


def session_routes(accounts: Resource[UserAccount], passwords: Passwords) -> tuple[Route, ...]:
    """Signing in and out."""
    operations = SessionOperations(accounts, passwords)
    return (
        Route(
            method="POST",
            path="/v2/sessions",
            handler=operations.sign_in,
            operation_id="createSession",
            summary="Sign in",
            description="After five failures with an address, further ones answer 429 for 15 minutes.",
            tag="Sessions",
            access=Access.PUBLIC,
            rate_class="login",
            body=SignIn,
            responses={201: SessionOut},
            errors=("INVALID_LOGIN", "TOO_MANY_ATTEMPTS", "SERVICE_UNAVAILABLE"),
        ),
        Route(
            method="DELETE",
            path="/v2/sessions/current",
            handler=operations.sign_out,
            operation_id="endSession",
            summary="Sign out",
            tag="Sessions",
            session_only=True,
            while_suspended=True,
            rate_class="write",
            responses={204: None},
        ),
    )
