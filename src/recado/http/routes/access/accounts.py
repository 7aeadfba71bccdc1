"""The operations on accounts (C24.2)."""

from collections.abc import Callable
from typing import Any

from recado.domain.core.ids import ACCOUNT, IdSource
from recado.http.api.paging import PageQuery
from recado.http.api.route import Access, Idempotency, Route
from recado.http.routes.access.account_models import (
    AccountCreate,
    AccountOut,
    AccountPage,
    AccountPatch,
    InviteAcceptance,
    InvitedAccount,
)
from recado.http.routes.access.account_operations import AccountOperations
from recado.storage.access.passwords import Passwords
from recado.storage.access.session_directory import SessionDirectory
from recado.storage.core.postgres import Database


def account_routes(
    *,
    database: Database,
    ids: IdSource,
    sessions: SessionDirectory,
    passwords: Passwords,
    random_bytes: Callable[[int], bytes],
) -> tuple[Route, ...]:
    """`random_bytes`: unpredictable ones, for the tokens of invitations."""
    operations = AccountOperations(database, ids, sessions, passwords, random_bytes)
    write: dict[str, Any] = {
        "tag": "Accounts",
        "scope": "accounts:write",
        "session_only": True,
        "rate_class": "write",
    }
    one: dict[str, Any] = {"load": operations.find, "path_ids": {"id": ACCOUNT}, **write}
    return (
        Route(
            method="GET",
            path="/v2/accounts",
            handler=operations.list,
            operation_id="listAccounts",
            summary="List the organization's accounts",
            tag="Accounts",
            scope="accounts:read",
            session_only=True,
            rate_class="read",
            query=PageQuery,
            responses={200: AccountPage},
        ),
        Route(
            method="POST",
            path="/v2/accounts",
            handler=operations.create,
            operation_id="createAccount",
            summary="Invite a person",
            description="The invitation is shown in this answer and never again. It holds for 72 hours.",
            body=AccountCreate,
            responses={201: InvitedAccount},
            errors=("SCOPE_ESCALATION", "ACCOUNT_EMAIL_TAKEN"),
            idempotency=Idempotency.ACCEPTED,
            creates=True,
            **write,
        ),
        Route(
            method="PATCH",
            path="/v2/accounts/{id}",
            handler=operations.patch,
            operation_id="updateAccount",
            summary="Change an account's name, role or further scopes",
            body=AccountPatch,
            responses={200: AccountOut},
            errors=("SCOPE_ESCALATION", "CONFLICT"),
            **one,
        ),
        Route(
            method="DELETE",
            path="/v2/accounts/{id}",
            handler=operations.disable,
            operation_id="disableAccount",
            summary="Disable an account and end its sessions",
            responses={204: None},
            errors=("SCOPE_ESCALATION", "CONFLICT"),
            **one,
        ),
        Route(
            method="POST",
            path="/v2/accounts/{id}/invite",
            handler=operations.invite,
            operation_id="inviteAccount",
            summary="Invite again: after a lost invitation, or to bring back a disabled account",
            description="The former invitation and a former password are void.",
            responses={200: InvitedAccount},
            errors=("SCOPE_ESCALATION", "INVALID_STATE"),
            idempotency=Idempotency.ACCEPTED,
            **one,
        ),
        Route(
            method="POST",
            path="/v2/accounts/accept-invite",
            handler=operations.accept,
            operation_id="acceptInvite",
            summary="Accept an invitation and choose a password",
            tag="Accounts",
            access=Access.PUBLIC,
            rate_class="login",
            body=InviteAcceptance,
            responses={200: AccountOut},
            errors=("UNAUTHORIZED", "ORGANIZATION_SUSPENDED", "SERVICE_UNAVAILABLE"),
        ),
    )
