"""The adapters that the suite runs over: one entry each, of the tables beside its other tests."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import orjson
from tests.channels.behaviours import breaks_inside, closes_after_reading, hangs, resets_after_reading, says
from tests.channels.chatapp import bridge_events, bridge_sends, cloud_answers, cloud_changes, cloud_news, cloud_sends
from tests.channels.conformance.tried import Callbacks, Operations, Sends, Tried, http_sends
from tests.channels.email import email_cases
from tests.channels.payment_events import MALFORMED as ODD_PAYMENTS
from tests.channels.payment_events import PAYMENTS
from tests.channels.rcs import bridge_cases as rcs_cases
from tests.channels.sms import bridge_cases

from recado.channels.chatapp.bridge import Bridge
from recado.channels.chatapp.cloud import Cloud
from recado.channels.core.provider import Account
from recado.channels.core.signing import PROVIDER_SIGNATURE, signature, signing_key
from recado.channels.payments.payments import PaymentsBridge
from recado.channels.sms.bridge import SmsBridge
from recado.channels.social.account import SocialDetails
from recado.channels.social.bridge import SocialBridge

SECRET = "whsec_c2VjcmV0IG9mIHRoZSBicmlkZ2U="
TOKEN = "bridge-token-9f2c"
APP_SECRET = "app-secret-77aa"
VERIFY_TOKEN = "verify-me-7f"
CLOUD_SIGNATURE = "X-Hub-Signature-256"
NO_JSON = [b"", b"{", b"null", b"[]", b"7", b'"events"', b"{}", b"\xff"]
LEAKY = '"message": "+55 11 98765-4321, bridge-token-9f2c"'  # what a refusal might quote


def events_body(*items: object) -> bytes:
    return orjson.dumps({"events": list(items)})


def bridge_signed(body: bytes, at: datetime) -> Mapping[str, str]:
    return {PROVIDER_SIGNATURE: signature([b"old", signing_key(SECRET)], body, at)}


def bridge_forged(body: bytes, at: datetime) -> Sequence[Mapping[str, str]]:
    keys = [signing_key(SECRET)]
    late, early = (signature(keys, body, at + timedelta(seconds=seconds)) for seconds in (301, -301))
    return [{PROVIDER_SIGNATURE: value} for value in (late, early, signature([b"other"], body, at))]


def cloud_signed(body: bytes, at: datetime) -> Mapping[str, str]:
    return {CLOUD_SIGNATURE: f"sha256={hmac.new(APP_SECRET.encode(), body, hashlib.sha256).hexdigest()}"}


def cloud_forged(body: bytes, at: datetime) -> Sequence[Mapping[str, str]]:
    digest = hmac.new(APP_SECRET.encode(), body, hashlib.sha256).hexdigest()
    return [{CLOUD_SIGNATURE: value} for value in (digest, f"sha1={digest}", "sha256=é" + "\udcff")]


OPERATION_FAILURES = [
    ("refused", says(422, f'{{"code": "policy_blocked", {LEAKY}}}'), "refused", "policy_blocked"),
    ("refused as a conflict", says(409, "{}"), "refused", "provider_error"),
    ("not let in", says(401, f'{{"code": "x", {LEAKY}}}'), "unreachable", "unauthorized"),
    ("not there", says(404, "{}"), "unreachable", "not_found"),
    ("busy", says(429, "{}"), "unreachable", "no_answer"),
    ("broken", says(500, "{}"), "unreachable", "no_answer"),
    ("moved", says(308, "{}", "Location: /elsewhere\r\n"), "unreachable", "no_answer"),
    ("silent", closes_after_reading, "unreachable", "no_answer"),
    ("reset", resets_after_reading, "unreachable", "no_answer"),
    ("never answered", hangs, "unreachable", "no_answer"),
    ("answered with no object", says(200, "[]"), "unreachable", "malformed_answer"),
    ("answered with no JSON", says(200, "["), "unreachable", "malformed_answer"),
]
"""Of a bridge, besides sends."""

BRIDGE = Tried(
    name="bridge",
    make=lambda url, clock, timeout: Bridge(
        url=url,
        token=TOKEN,
        secret=SECRET,
        callback_url="https://recado.test/v2/callbacks/chatapp/bridge",
        clock=clock,
        timeout=timeout,
    ),
    secrets=(TOKEN, SECRET, "number-token"),
    sends=Sends(taken=bridge_sends.TAKEN, cases=bridge_sends.SENDS),
    callbacks=Callbacks(
        body_of=events_body,
        items=[(item, [event]) for item, event in bridge_events.INCOMING],
        odd=bridge_events.MALFORMED,
        unread=[*NO_JSON, b'{"events": {}}', b'{"events": null}'],
        signed=bridge_signed,
        forged=bridge_forged,
    ),
    operations=Operations(
        calls={
            "number_health": lambda bridge, account: bridge.number_health(account),
            "update_profile": lambda bridge, account: bridge.update_profile(account, {"about": "Pão"}),
            "connect": lambda bridge, account: bridge.connect(account),
            "disconnect": lambda bridge, account: bridge.disconnect(account),
            "submit_template": lambda bridge, account: bridge.submit_template(account, cloud_answers.TEMPLATE),
            "delete_template": lambda bridge, account: bridge.delete_template(account, "ola", None),
            "list_templates": lambda bridge, account: bridge.list_templates(account),
            "create_flow": lambda bridge, account: bridge.create_flow(account, cloud_answers.FLOW),
            "publish_flow": lambda bridge, account: bridge.publish_flow(account, "f-1"),
            "deprecate_flow": lambda bridge, account: bridge.deprecate_flow(account, "f-1"),
            "upload_media": lambda bridge, account: bridge.upload_media(
                account, cloud_answers.chunks_of(b"x"), size=1, mime_type="image/png", filename="f"
            ),
        },
        failures=OPERATION_FAILURES,
    ),
)

CLOUD = Tried(
    name="cloud",
    make=lambda url, clock, timeout: Cloud(
        url=url, app_secret=APP_SECRET, verify_token=VERIFY_TOKEN, clock=clock, timeout=timeout
    ),
    secrets=(APP_SECRET, VERIFY_TOKEN, "number-token"),
    sends=Sends(taken=cloud_answers.TAKEN, cases=cloud_sends.SENDS),
    callbacks=Callbacks(
        body_of=cloud_changes.body_of,
        items=cloud_changes.INCOMING + cloud_news.NEWS,
        odd=cloud_changes.MALFORMED,
        unread=[*NO_JSON, b'{"entry": {}}', b'{"entry": null}', b'{"entry": [7]}'],
        signed=cloud_signed,
        forged=cloud_forged,
    ),
    operations=Operations(
        calls={
            "number_health": lambda cloud, account: cloud.number_health(account),
            "update_profile": lambda cloud, account: cloud.update_profile(account, {"about": "Pão"}),
            "connect": lambda cloud, account: cloud.connect(account),
            "disconnect": lambda cloud, account: cloud.disconnect(account),
            "submit_template": lambda cloud, account: cloud.submit_template(account, cloud_answers.TEMPLATE),
            "delete_template": lambda cloud, account: cloud.delete_template(account, "ola", None),
            "list_templates": lambda cloud, account: cloud.list_templates(account),
            "create_flow": lambda cloud, account: cloud.create_flow(account, cloud_answers.FLOW),
            "publish_flow": lambda cloud, account: cloud.publish_flow(account, "f-1"),
            "deprecate_flow": lambda cloud, account: cloud.deprecate_flow(account, "f-1"),
            "upload_media": lambda cloud, account: cloud.upload_media(
                account, cloud_answers.chunks_of(b"x"), size=1, mime_type="image/png", filename="f"
            ),
        },
        failures=[
            ("refused", cloud_sends.leaky(100), "refused", "provider_error"),
            ("past the window", cloud_sends.leaky(131047), "refused", "window_closed"),
            ("without template", cloud_sends.leaky(132001, 404), "refused", "template_unavailable"),
            ("refused by a new code", cloud_sends.leaky(139999), "refused", "provider_error"),
            ("refused for now", cloud_sends.leaky(139999, is_transient=True), "unreachable", "no_answer"),
            ("not let in", cloud_sends.leaky(190, 401), "unreachable", "unauthorized"),
            ("not permitted", cloud_sends.leaky(10, 403), "unreachable", "forbidden"),
            ("blocked", cloud_sends.leaky(368, 403), "unreachable", "account_blocked"),
            ("of an unknown number", cloud_sends.leaky(100, error_subcode=33), "unreachable", "not_found"),
            ("failed for now", cloud_sends.leaky(131000, 500), "unreachable", "try_later"),
            ("too fast", cloud_sends.leaky(80007, 429), "unreachable", "try_later"),
            ("not let in without a word", says(401), "unreachable", "unauthorized"),
            ("not there", says(404), "unreachable", "not_found"),
            ("refused without a word", says(422), "refused", "provider_error"),
            ("broken", says(500), "unreachable", "no_answer"),
            ("moved", says(302, "", "Location: http://127.0.0.1:9/\r\n"), "unreachable", "no_answer"),
            ("answered with no JSON", says(200, "["), "unreachable", "malformed_answer"),
            ("answered with no object", says(200, "[]"), "unreachable", "malformed_answer"),
            ("reset", resets_after_reading, "unreachable", "no_answer"),
            ("never answered", hangs, "unreachable", "no_answer"),
            (
                "cut short",
                breaks_inside("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", False),
                "unreachable",
                "malformed_answer",
            ),
        ],
    ),
)

PAYMENTS_BRIDGE = Tried(
    name="payments",
    make=lambda url, clock, timeout: PaymentsBridge(SECRET),
    secrets=(SECRET,),
    callbacks=Callbacks(
        body_of=events_body,
        items=PAYMENTS,
        odd=ODD_PAYMENTS,
        unread=[*NO_JSON, b'{"events": 1}', b'{"events": {}}'],
        signed=bridge_signed,
        forged=bridge_forged,
    ),
)

SMS_BRIDGE = Tried(
    name="sms bridge",
    make=lambda url, clock, timeout: SmsBridge(
        url=url,
        token=TOKEN,
        secret=SECRET,
        callback_url="https://recado.test/v2/callbacks/sms/bridge",
        clock=clock,
        timeout=timeout,
    ),
    secrets=(TOKEN, SECRET, "number-token"),
    sends=Sends(taken=bridge_sends.TAKEN, cases=bridge_cases.SENDS),
    callbacks=Callbacks(
        body_of=events_body,
        items=[(item, [event]) for item, event in bridge_cases.INCOMING],
        odd=bridge_events.MALFORMED,
        unread=[*NO_JSON, b'{"events": {}}', b'{"events": null}'],
        signed=bridge_signed,
        forged=bridge_forged,
    ),
)

RCS_BRIDGE = Tried(
    name="rcs bridge",
    make=lambda url, clock, timeout: rcs_cases.Told(
        url=url,
        token=TOKEN,
        secret=SECRET,
        callback_url="https://recado.test/v2/callbacks/rcs/bridge",
        clock=clock,
        timeout=timeout,
    ),
    secrets=(TOKEN, SECRET, "number-token"),
    sends=Sends(taken=bridge_sends.TAKEN, cases=rcs_cases.SENDS),
    callbacks=Callbacks(
        body_of=events_body,
        items=[(item, [event]) for item, event in rcs_cases.INCOMING],
        odd=bridge_events.MALFORMED,
        unread=[*NO_JSON, b'{"events": {}}', b'{"events": null}'],
        signed=bridge_signed,
        forged=bridge_forged,
    ),
)

SOCIAL_ACCOUNT = Account(
    sender_id="soc_1",
    organization_id="org_1",
    env="live",
    provider_id="page-1",
    owner="page-1",
    details=SocialDetails(platform="page", access_token="number-token"),
)

SOCIAL_BRIDGE = Tried(
    name="social bridge",
    make=lambda url, clock, timeout: SocialBridge(
        url=url,
        token=TOKEN,
        secret=SECRET,
        callback_url="https://recado.test/v2/callbacks/social/bridge",
        clock=clock,
        timeout=timeout,
    ),
    secrets=(TOKEN, SECRET, "number-token"),
    sends=Sends(taken=bridge_sends.TAKEN, cases=http_sends(bridge_sends.TAKEN, bridge_sends.PLAIN)),
    callbacks=Callbacks(
        body_of=events_body,
        items=[(item, [event]) for item, event in bridge_events.INCOMING],
        odd=bridge_events.MALFORMED,
        unread=[*NO_JSON, b'{"events": {}}', b'{"events": null}'],
        signed=bridge_signed,
        forged=bridge_forged,
    ),
    operations=Operations(
        calls={
            "connect": lambda bridge, account: bridge.connect(SOCIAL_ACCOUNT),
            "disconnect": lambda bridge, account: bridge.disconnect(SOCIAL_ACCOUNT),
        },
        failures=OPERATION_FAILURES,
    ),
)

EMAIL_BRIDGE = Tried(
    name="email bridge",
    make=lambda url, clock, timeout: email_cases.WithContent(
        url=url,
        token=TOKEN,
        secret=SECRET,
        callback_url="https://recado.test/v2/callbacks/email/bridge",
        clock=clock,
        timeout=timeout,
    ),
    secrets=(TOKEN, SECRET, "number-token"),
    sends=Sends(taken=bridge_sends.TAKEN, cases=email_cases.SENDS),
    callbacks=Callbacks(
        body_of=events_body,
        items=[(item, [event]) for item, event in email_cases.INCOMING],
        odd=bridge_events.MALFORMED,
        unread=[*NO_JSON, b'{"events": {}}', b'{"events": null}'],
        signed=bridge_signed,
        forged=bridge_forged,
    ),
)

ALL = (BRIDGE, CLOUD, PAYMENTS_BRIDGE, SMS_BRIDGE, RCS_BRIDGE, SOCIAL_BRIDGE, EMAIL_BRIDGE)
