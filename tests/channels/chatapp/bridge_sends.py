"""Every way in which a send to a bridge can go, besides those of every provider over HTTP."""

from tests.channels.behaviours import breaks_inside, says
from tests.channels.conformance.tried import BRIEF, Outgoing, http_sends

from recado.channels.core.provider import Accepted, Refused, Unknown

TAKEN = '{"providerMessageId": "p-1"}'
HALF_REFUSED = 'HTTP/1.1 400 Bad\r\nContent-Length: 100\r\n\r\n{"code": "policy'
LENGTHY = '{"code": "policy_blocked", "message": "' + "é" * 9_999 + '"}'
PLAIN = "the bridge answered with status"

SENDS = [
    *http_sends(TAKEN, PLAIN),
    Outgoing("accepts and says more", says(202, '{"providerMessageId": "p-2", "more": 1}'), Accepted("p-2")),
    Outgoing("accepts without an id", says(200, "{}"), Unknown()),
    Outgoing("accepts with an empty id", says(200, '{"providerMessageId": ""}'), Unknown()),
    Outgoing("accepts with a numeric id", says(200, '{"providerMessageId": 7}'), Unknown()),
    Outgoing("accepts with an id that cannot be stored", says(200, '{"providerMessageId": "a\\u0000"}'), Unknown()),
    Outgoing("refuses", says(400, '{"code": "policy_blocked", "message": "no"}'), Refused("policy_blocked", "no")),
    Outgoing("refuses with 422", says(422, '{"code": "media_invalid", "message": "m"}'), Refused("media_invalid", "m")),
    Outgoing(
        "refuses for its own reason", says(400, '{"code": "E-77", "message": "m"}'), Refused("provider_error", "m")
    ),
    Outgoing("refuses by our code", says(400, '{"code": "withdrawn", "message": "m"}'), Refused("provider_error", "m")),
    Outgoing(
        "refuses with odd types", says(400, '{"code": [], "message": {}}'), Refused("provider_error", f"{PLAIN} 400")
    ),
    Outgoing("stops inside its refusal", breaks_inside(HALF_REFUSED, False), Refused("provider_error", f"{PLAIN} 400")),
    Outgoing(
        "trickles its refusal", breaks_inside(HALF_REFUSED, True), Refused("provider_error", f"{PLAIN} 400"), BRIEF
    ),
    Outgoing(
        "quotes the recipient",
        says(
            400, '{"code": "recipient_unreachable", "message": "+55 11 98765-4321, or 5511987654321, is\\n not there"}'
        ),
        Refused("recipient_unreachable", "***, or ***, is not there"),
    ),
    Outgoing(
        "quotes the text and the token",
        says(400, '{"code": "policy_blocked", "message": "the  secret of the house, bridge-token-9f2c, a@b.example"}'),
        Refused("policy_blocked", "***, ***, ***"),
    ),
    Outgoing("refuses at length", says(400, LENGTHY), Refused("policy_blocked", "é" * 200)),
    Outgoing("is at work on the same key", says(409), Unknown()),
]
