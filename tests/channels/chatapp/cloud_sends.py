"""Every way in which a send to the hosted API can go, besides those of every provider over HTTP."""

import json
from typing import Any

from tests.channels.behaviours import Behaviour, breaks_inside, says
from tests.channels.chatapp.cloud_answers import TAKEN
from tests.channels.conformance.tried import Outgoing, http_sends

from recado.channels.core.provider import Accepted, Down, Refused, Retry, SlowDown, SlowPair, Unknown

HALF_REFUSED = 'HTTP/1.1 400 Bad\r\nContent-Length: 100\r\n\r\n{"error": {"code": 131026'
PLAIN = "the provider answered with status"


def error(code: Any, status: int = 400, *, text: str = "m", headers: str = "", **more: Any) -> Behaviour:
    return says(status, json.dumps({"error": {"message": text, "type": "T", "code": code, **more}}), headers)


def leaky(code: int, status: int = 400, **more: Any) -> Behaviour:
    """An error whose text quotes what nobody may read."""
    return error(code, status, text="+55 11 98765-4321, number-token", **more)


SENDS = [
    *http_sends(TAKEN, PLAIN),
    Outgoing(
        "accepts and holds back", says(200, '{"messages": [{"id": "p-1", "message_status": "h"}]}'), Accepted("p-1")
    ),
    Outgoing("accepts without messages", says(200, "{}"), Unknown()),
    Outgoing("accepts no message", says(200, '{"messages": []}'), Unknown()),
    Outgoing("accepts without an id", says(200, '{"messages": [{}]}'), Unknown()),
    Outgoing("accepts with a numeric id", says(200, '{"messages": [{"id": 7}]}'), Unknown()),
    Outgoing("accepts with another shape", says(200, '{"messages": {"id": "p-1"}}'), Unknown()),
    Outgoing("accepts with an id that cannot be stored", says(200, '{"messages": [{"id": "a\\u0000"}]}'), Unknown()),
    Outgoing("sends the number too fast", error(130429, 429), SlowDown(None)),
    Outgoing(
        "sends the number too fast, and says how long", error(130429, headers="Retry-After: 7\r\n"), SlowDown(7.0)
    ),
    Outgoing("sends the account too fast", error(80007), SlowDown(None)),
    Outgoing("sends the application too fast", error(4, 403), SlowDown(None)),
    Outgoing("writes to one person too fast", error(131056), SlowPair(6.0)),
    Outgoing("writes to one person far too fast", error(131056, headers="Retry-After: 60\r\n"), SlowPair(60.0)),
    Outgoing("blocks the account", error(368, 403), Down("account_blocked")),
    Outgoing("locks the account", error(131031, 403), Down("account_blocked")),
    Outgoing("fails for now", error(131000, 500), Retry(None)),
    Outgoing("is overloaded", error(131016, 503), Retry(None)),
    Outgoing("has a fault", error(1, 500), Retry(None)),
    Outgoing("has a service down", error(2, 503), Retry(None)),
    Outgoing("does not reach the recipient", error(131026), Refused("recipient_unreachable", "m")),
    Outgoing("is past the window", error(131047), Refused("window_closed", "m")),
    Outgoing("wants other variables", error(132000), Refused("template_vars", "m")),
    Outgoing("does not know the template", error(132001, 404), Refused("template_unavailable", "m")),
    Outgoing("finds the text too long", error(132005), Refused("template_vars", "m")),
    Outgoing("dislikes the template", error(132007), Refused("template_unavailable", "m")),
    Outgoing("wants variables of another form", error(132012), Refused("template_vars", "m")),
    Outgoing("has paused the template", error(132015), Retry(None)),
    Outgoing("takes no marketing here", error(131063), Refused("template_unavailable", "m")),
    Outgoing("has disabled the template", error(132016), Refused("template_unavailable", "m")),
    Outgoing("has blocked the flow", error(132068), Refused("template_unavailable", "m")),
    Outgoing("does not know the type", error(131051), Refused("media_invalid", "m")),
    Outgoing("cannot fetch the media", error(131052), Refused("media_invalid", "m")),
    Outgoing("cannot take the media", error(131053), Refused("media_invalid", "m")),
    Outgoing("lets the number send less, for its spam", error(131048), SlowDown(None)),
    Outgoing("protects the recipient", error(131049), Refused("policy_blocked", "m")),
    Outgoing("was told to stop", error(131050), Refused("opted_out", "m")),
    Outgoing("does not know the token", error(190, 401), Down("unauthorized")),
    Outgoing("cannot authenticate", error(0, 401), Down("unauthorized")),
    Outgoing("does not permit it", error(10, 403), Down("forbidden")),
    Outgoing("lacks a permission", error(200, 403), Down("forbidden")),
    Outgoing("lacks the last permission", error(299, 400), Down("forbidden")),
    Outgoing("does not know the number", error(100, 400, error_subcode=33), Down("not_found")),
    Outgoing("has the number unregistered", error(133010), Down("not_registered")),
    Outgoing("finds a parameter invalid", error(100), Refused("provider_error", "m")),
    Outgoing("has a new code", error(139999), Refused("provider_error", "m")),
    Outgoing("has a new passing code", error(139999, is_transient=True), Retry(None)),
    Outgoing("has a new code and a fault", error(139999, 500), Unknown()),
    Outgoing("has a code of another type", error("131026"), Refused("provider_error", "m")),
    Outgoing("has a flag for a code", error(False, 400), Refused("provider_error", "m")),
    Outgoing(
        "explains itself", error(100, error_data={"details": "the details"}), Refused("provider_error", "the details")
    ),
    Outgoing("explains oddly", error(100, error_data="odd", text=""), Refused("provider_error", f"{PLAIN} 400")),
    Outgoing("refuses with another shape", says(400, '{"error": "no"}'), Refused("provider_error", f"{PLAIN} 400")),
    Outgoing("stops inside its refusal", breaks_inside(HALF_REFUSED, False), Refused("provider_error", f"{PLAIN} 400")),
    Outgoing(
        "quotes the recipient",
        error(131026, text="+55 11 98765-4321, or 5511987654321, is\n not there"),
        Refused("recipient_unreachable", "***, or ***, is not there"),
    ),
    Outgoing(
        "quotes the text and the token",
        error(131049, text="the  secret of the house, number-token, a@b.example"),
        Refused("policy_blocked", "***, ***, ***"),
    ),
    Outgoing("refuses at length", error(131049, text="é" * 9_999), Refused("policy_blocked", "é" * 200)),
]
