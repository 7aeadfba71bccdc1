"""Who may read metrics (C34.1): who shows the token for it; where there is none, who is on this machine."""

import hmac
from ipaddress import ip_network
from typing import Final

from multidict import CIMultiDictProxy

from recado.http.middleware.authentication import bearer_token, unauthorized
from recado.http.wire.client_ip import within

_FORWARDED: Final = ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via")
_LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


class Scrapers:
    """Knows them. `token`: None lets in whoever is on this machine."""

    def __init__(self, token: str | None) -> None:
        self._token = None if token is None else token.encode()

    def let_in(self, client_ip: str, headers: CIMultiDictProxy[str]) -> None:
        """Pass for one of them; raises the 401."""
        if self._token is None:
            if not _is_local(client_ip, headers):
                raise unauthorized(
                    "Metrics are shown on this machine only, or with a token: the setting RECADO_METRICS_TOKEN."
                )
        elif not hmac.compare_digest(bearer_token(headers.get("Authorization")).encode(), self._token):
            raise unauthorized("Metrics need the token of the setting RECADO_METRICS_TOKEN.")


def _is_local(client_ip: str, headers: CIMultiDictProxy[str]) -> bool:
    """Whether it comes from this machine, and not through a proxy on it, which would let in everybody."""
    return not any(name in headers for name in _FORWARDED) and within(client_ip, _LOOPBACK)
