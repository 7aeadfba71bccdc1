"""Credentials as the HTTP layer knows them: from what stands behind a token to a principal, made once while cached."""

from ipaddress import ip_network

from recado.domain.access.scopes import implied
from recado.domain.core.tokens import is_session
from recado.http.callers.principal import ACCOUNT, KEY, Principal
from recado.storage.access.key_directory import KeyDirectory, KnownKey
from recado.storage.access.session_directory import KnownSession, SessionDirectory


class TokenAuthenticator:
    """API keys and dashboard sessions (C3.1), told apart by their prefix."""

    def __init__(self, keys: KeyDirectory, sessions: SessionDirectory) -> None:
        self._keys = keys
        self._sessions = sessions

    def peek(self, token: str) -> Principal | None:
        """The holder of a token that is known and valid, without waiting."""
        if is_session(token):
            session = self._sessions.peek(token)
            return None if session is None else session.principal or _of_session(session)
        key = self._keys.peek(token)
        return None if key is None else key.principal or _of_key(key)

    async def authenticate(self, token: str) -> Principal:
        """The holder of `token`; raises `Problem` 401."""
        if is_session(token):
            session = await self._sessions.authenticate(token)
            return session.principal or _of_session(session)
        key = await self._keys.authenticate(token)
        return key.principal or _of_key(key)


def _of_key(known: KnownKey) -> Principal:
    key = known.record
    overrides = {
        name: (float(limit["perSecond"]), int(limit["capacity"])) for name, limit in (key.rate_limits or {}).items()
    }
    principal = Principal(
        organization_id=key.organization_id,
        env=key.env,
        actor_type=KEY,
        actor_id=key.id,
        scopes=implied(key.scopes),
        unlimited=key.unlimited,
        suspended=known.suspended,
        hide_phone_hash=known.hide_phone_hash,
        allowed_ips=tuple(ip_network(network, strict=False) for network in key.allowed_ips),
        rate_limits=overrides,
        from_operator=key.created_by_id is None,  # over HTTP somebody makes it
        expires_at=known.ends_at,
        name=key.name,
    )
    known.principal = principal
    return principal


def _of_session(known: KnownSession) -> Principal:
    account = known.account
    principal = Principal(
        organization_id=account.organization_id,
        env=known.env,
        actor_type=ACCOUNT,
        actor_id=account.id,
        scopes=account.scopes,
        suspended=known.suspended,
        hide_phone_hash=known.hide_phone_hash,
        expires_at=known.expires_at,
        name=account.name,
    )
    known.principal = principal
    return principal
