"""Credentials as the HTTP layer knows them: from the key behind a token to a principal, made once per cached key."""

from ipaddress import ip_network

from recado.domain.scopes import implied
from recado.http.principal import KEY, Principal
from recado.storage.key_directory import KeyDirectory, KnownKey


class KeyAuthenticator:
    """API keys (C3.1)."""

    def __init__(self, keys: KeyDirectory) -> None:
        self._keys = keys

    def peek(self, token: str) -> Principal | None:
        """The holder of a token that is known and valid, without waiting."""
        known = self._keys.peek(token)
        return None if known is None else known.principal or _principal(known)

    async def authenticate(self, token: str) -> Principal:
        """The holder of `token`; raises `Problem` 401."""
        known = await self._keys.authenticate(token)
        return known.principal or _principal(known)


def _principal(known: KnownKey) -> Principal:
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
        allowed_ips=tuple(ip_network(network, strict=False) for network in key.allowed_ips),
        rate_limits=overrides,
        expires_at=known.ends_at,
        name=key.name,
    )
    known.principal = principal
    return principal
