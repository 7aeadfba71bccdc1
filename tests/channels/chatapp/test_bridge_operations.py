"""The bridge's operations besides sending: what is asked, how answers are read, and failures of two kinds."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest
from tests.captured import capture_logs
from tests.channels.chatapp.cloud_answers import FLOW

from recado.channels.chatapp.bridge import Bridge
from recado.channels.core.errors import ProviderError
from recado.channels.core.provider import Account, NumberHealth, ProviderTemplate, Submission, TemplateSubmission
from recado.engine.clock import VirtualClock

TEMPLATE = TemplateSubmission(
    id="tpl_000000010000000000001",
    name="ola",
    language="pt-BR",
    category="utility",
    components=[{"type": "BODY", "payload": {"text": "Olá"}}],
)
LISTED = {
    "providerTemplateId": "t-1",
    "name": "ola",
    "language": "pt-BR",
    "category": "utility",
    "status": "approved",
    "components": [{"type": "BODY", "payload": {"text": "Olá\0"}}],
}


def says(status: int, document: Any, headers: str = "") -> Callable[[Any], Awaitable[None]]:
    async def behave(connection: Any) -> None:
        await connection.read_request()
        await connection.answer(status, orjson.dumps(document), headers)

    return behave


ANSWERED = [
    (
        lambda bridge, account: bridge.number_health(account),
        {
            "status": "connected",
            "quality": "green",
            "tier": "tier_1k",
            "nameStatus": "approved",
            "verifiedName": "Casa",
            "perSecond": 80,
            "profile": {"about": "Oi", "unknown": "x"},
            "issues": [{"code": "payment", "message": "late"}],
        },
        NumberHealth(
            verified=True,
            status="connected",
            quality_rating="green",
            messaging_tier="tier_1k",
            name_status="approved",
            verified_name="Casa",
            per_second=80,
            profile={"about": "Oi"},
            issues=(("payment", "late"),),
        ),
        "number_health",
        {},
    ),
    (
        lambda bridge, account: bridge.number_health(account),
        {"status": "pending"},
        NumberHealth(verified=False, status="pending"),
        "number_health",
        {},
    ),
    (
        lambda bridge, account: bridge.submit_template(account, TEMPLATE),
        {"providerTemplateId": "t-1"},
        Submission("t-1"),
        "submit_template",
        {
            "id": TEMPLATE.id,
            "name": "ola",
            "language": "pt-BR",
            "category": "utility",
            "components": TEMPLATE.components,
            "callbackUrl": "https://recado.test/v2/callbacks/chatapp/bridge",
        },
    ),
    (
        lambda bridge, account: bridge.submit_template(account, replace(TEMPLATE, provider_template_id="t-1")),
        {"providerTemplateId": "t-1"},
        Submission("t-1"),
        "submit_template",
        {
            "id": TEMPLATE.id,
            "name": "ola",
            "language": "pt-BR",
            "category": "utility",
            "components": TEMPLATE.components,
            "providerTemplateId": "t-1",
            "callbackUrl": "https://recado.test/v2/callbacks/chatapp/bridge",
        },
    ),
    (
        lambda bridge, account: bridge.list_templates(account),
        {"templates": [LISTED]},
        [
            ProviderTemplate(
                provider_template_id="t-1",
                name="ola",
                language="pt-BR",
                category="utility",
                status="approved",
                components=[{"type": "BODY", "payload": {"text": "Olá\ufffd"}}],
            )
        ],
        "list_templates",
        {},
    ),
    (
        lambda bridge, account: bridge.list_templates(account),
        {"templates": [{**LISTED, "components": [{"text": "x" * 1_000}] * 20}] * 100},
        None,  # 2 MB: longer than the answer to a send may be
        "list_templates",
        {},
    ),
    (
        lambda bridge, account: bridge.delete_template(account, "ola", "t-1"),
        {},
        None,
        "delete_template",
        {"name": "ola", "providerTemplateId": "t-1"},
    ),
    (
        lambda bridge, account: bridge.update_profile(account, {"about": "Oi"}),
        {},
        None,
        "update_profile",
        {"profile": {"about": "Oi"}},
    ),
    (
        lambda bridge, account: bridge.create_flow(account, FLOW),
        {"providerFlowId": "f-1"},
        "f-1",
        "create_flow",
        {
            "name": FLOW.name,
            "providerCategories": ["SURVEY"],
            "flowJson": FLOW.content,
            "callbackUrl": "https://recado.test/v2/callbacks/chatapp/bridge",
        },
    ),
    (
        lambda bridge, account: bridge.publish_flow(account, "f-1"),
        {},
        None,
        "publish_flow",
        {"providerFlowId": "f-1"},
    ),
    (
        lambda bridge, account: bridge.deprecate_flow(account, "f-1"),
        {},
        None,
        "deprecate_flow",
        {"providerFlowId": "f-1"},
    ),
    (lambda bridge, account: bridge.connect(account), {}, None, "connect", {}),
    (lambda bridge, account: bridge.disconnect(account), {}, None, "disconnect", {}),
]


@pytest.mark.parametrize(("call", "answer", "result", "operation", "fields"), ANSWERED)
async def test_an_operation_is_asked_and_its_answer_read(
    call: Any, answer: Any, result: Any, operation: str, fields: Any, fake_bridge: Any, bridge_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = says(200, answer)
    bridge: Bridge = await bridge_to(fake_bridge.url)

    answered = await call(bridge, account)

    if result is not None:
        assert answered == result
    (request,) = fake_bridge.requests
    assert request.path == f"/base/{operation}"
    assert request.headers["authorization"] == "Bearer bridge-token-9f2c"
    names = {"organizationId": account.organization_id, "account": "pn-1", "businessAccount": "ba-1"}
    assert request.json == {"env": "live", **names, **fields}
    assert b"number-token" not in request.body


FAILING = [
    ("of unknown status", says(200, {"status": "lost"}), "unreachable", "malformed_answer"),
    ("of odd issues", says(200, {"status": "connected", "issues": ["late"]}), "unreachable", "malformed_answer"),
    (
        "of an odd profile",
        says(200, {"status": "connected", "profile": {"about": 7}}),
        "unreachable",
        "malformed_answer",
    ),
    ("of an odd throughput", says(200, {"status": "connected", "perSecond": True}), "unreachable", "malformed_answer"),
]


@pytest.mark.parametrize(
    ("behaviour", "kind", "code"), [case[1:] for case in FAILING], ids=[case[0] for case in FAILING]
)
async def test_a_health_of_another_shape_is_malformed(
    behaviour: Any, kind: str, code: str, fake_bridge: Any, bridge_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = behaviour
    bridge: Bridge = await bridge_to(fake_bridge.url)

    with pytest.raises(ProviderError) as failure:
        await bridge.number_health(account)

    assert (failure.value.kind, failure.value.code) == (kind, code)
    assert "token" not in str(failure.value)


@pytest.mark.parametrize("answer", [{}, {"providerTemplateId": 7}])
async def test_a_submission_without_an_id_is_malformed(
    answer: Any, fake_bridge: Any, bridge_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = says(200, answer)
    bridge: Bridge = await bridge_to(fake_bridge.url)

    with pytest.raises(ProviderError, match="malformed_answer"):
        await bridge.submit_template(account, TEMPLATE)


@pytest.mark.parametrize("answer", [{}, {"providerFlowId": 7}])
async def test_a_flow_without_an_id_is_malformed(
    answer: Any, fake_bridge: Any, bridge_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = says(200, answer)
    bridge: Bridge = await bridge_to(fake_bridge.url)

    with pytest.raises(ProviderError, match="malformed_answer"):
        await bridge.create_flow(account, FLOW)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"status": "draft"}, "status"),
        ({"components": ["BODY"]}, "components[0]"),
        ({"components": {}}, "components"),
        ({"name": ""}, "name"),
    ],
)
async def test_a_listed_template_of_another_shape_is_left_out_and_told(
    change: Any, where: str, fake_bridge: Any, bridge_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = says(200, {"templates": [LISTED, {**LISTED, **change}, 7, LISTED]})
    bridge: Bridge = await bridge_to(fake_bridge.url)

    with capture_logs() as logs:
        assert [each.name for each in await bridge.list_templates(account)] == ["ola", "ola"]
    assert [(each["count"], each["first"]) for each in logs if each["event"] == "templates_left_out"] == [
        (2, f"templates[1].{where}")
    ]


@pytest.mark.parametrize(
    "url", ["bridge.example", "ftp://bridge.example", "http://", "http://u:p@bridge.example", "http://b.example/?a=1"]
)
def test_an_address_that_is_none_is_refused_before_the_start(url: str, clock: VirtualClock) -> None:
    with pytest.raises(ValueError, match="a bridge's address"):
        Bridge(url=url, token="t", secret="s", callback_url="https://recado.test", clock=clock)


def test_a_bridge_is_not_taken_for_idempotent_unless_said(clock: VirtualClock) -> None:
    settings: Any = {"url": "http://b.example", "token": "t", "secret": "s", "callback_url": "", "clock": clock}

    assert not Bridge(**settings).idempotent
    assert Bridge(**settings, idempotent=True).idempotent
