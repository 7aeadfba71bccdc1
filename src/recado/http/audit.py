"""From a call to the actor of its audit entries (C24.5)."""

from recado.http.call import Call
from recado.storage.audit import Actor


def actor_of(call: Call) -> Actor:
    """Who called, from where, in which request."""
    principal = call.principal
    return Actor(principal.actor_type, principal.actor_id, ip=call.client_ip, request_id=call.request_id)
