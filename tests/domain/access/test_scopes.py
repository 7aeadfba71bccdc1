"""Who may hold which scope (C3.2, C24.4)."""

from recado.domain.access.scopes import ALL_SCOPES, KEY_SCOPES, SESSION_ONLY, implied


def test_documents_and_accounts_are_never_granted_to_a_key() -> None:
    assert {"contacts:pii", "accounts:read", "accounts:write"} == SESSION_ONLY
    assert KEY_SCOPES | SESSION_ONLY == ALL_SCOPES
    assert not KEY_SCOPES & SESSION_ONLY


def test_a_key_may_operate_the_queues() -> None:
    assert {"ops:read", "ops:write", "messages:force", "pii:full"} <= KEY_SCOPES


def test_only_push_send_implies_another_scope() -> None:
    assert implied(["push:send"]) == {"push:send", "push:register"}
    for scope in ALL_SCOPES - {"push:send"}:
        assert implied([scope]) == {scope}
    assert implied([]) == frozenset()
