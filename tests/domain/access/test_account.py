"""What accounts may do by their role (C3.3), and how they move (C24.2)."""

import pytest

from recado.domain.access.account import ACCOUNT_MACHINE, AccountEvent, AccountStatus, Role, scopes_of
from recado.domain.access.scopes import ALL_SCOPES
from recado.domain.core.machine import IllegalMove


@pytest.mark.parametrize("role", ["owner", "admin"])
def test_owners_and_admins_hold_every_scope(role: str) -> None:
    assert scopes_of(role) == ALL_SCOPES


def test_an_operator_works_with_customers_and_sees_what_that_needs() -> None:
    scopes = scopes_of("operator")
    worked_in = {scope.partition(":")[0] for scope in scopes if not scope.endswith(":read")}
    assert worked_in == {
        "contacts", "messages", "sms", "rcs", "email", "push", "social", "campaigns", "templates", "flows",
        "crm", "pii", "ops",
    }  # fmt: skip
    only_read = {scope.partition(":")[0] for scope in scopes} - worked_in
    assert only_read == {"numbers", "webhooks", "org", "wallet"}
    assert not scopes & {"messages:force", "contacts:pii", "accounts:read", "apikeys:read", "audit:read"}
    assert "push:register" in scopes


def test_an_analyst_reads_everything_but_what_is_masked() -> None:
    scopes = scopes_of("analyst")
    assert scopes == {scope for scope in ALL_SCOPES if scope.endswith(":read")}


def test_further_scopes_come_on_top_with_what_they_imply() -> None:
    assert scopes_of("analyst", ["push:send"]) == scopes_of("analyst") | {"push:send", "push:register"}


@pytest.mark.parametrize("role", list(Role))
def test_no_role_has_a_scope_that_does_not_exist(role: Role) -> None:
    assert scopes_of(role) <= ALL_SCOPES


def test_an_active_account_is_not_invited_and_only_an_invited_one_accepts() -> None:
    with pytest.raises(IllegalMove):
        ACCOUNT_MACHINE.move(AccountStatus.ACTIVE, AccountEvent.INVITE)
    assert ACCOUNT_MACHINE.sources(AccountEvent.ACCEPT) == {AccountStatus.INVITED}
    assert ACCOUNT_MACHINE.sources(AccountEvent.DISABLE) == set(AccountStatus)
