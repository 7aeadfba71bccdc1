"""What Prometheus gets of a service that sends, fails and restarts (C34.1)."""

import asyncio
import os
import urllib.request
from collections.abc import Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from tests.acceptance.sandbox.customer import Customer, phone
from tests.program import Api, Service
from tests.waiting import until

MOST_VALUES = 200
"""Of a label: what callers and organizations make would be more."""


def scraped(service: Service) -> str:
    with urllib.request.urlopen(f"{service.url}/metrics", timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        return str(answer.read().decode())


def values(text: str) -> dict[str, list[tuple[Mapping[str, str], float]]]:
    found: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


async def value(service: Service, name: str, **labels: str) -> float:
    """The sum of what has these labels."""
    found = values(await asyncio.to_thread(scraped, service)).get(name, [])
    return sum(number for has, number in found if labels.items() <= has.items())


async def test_what_is_sent_refused_and_asked_for_is_counted(service: Service, regular: Customer, api: Api) -> None:
    sent, failed = {"channel": "chatapp"}, {"channel": "chatapp", "code": "recipient_unreachable"}
    names: list[tuple[str, dict[str, str]]] = [
        ("recado_messages_accepted_total", sent),
        ("recado_messages_sent_total", sent),
        ("recado_messages_failed_total", failed),
        ("recado_http_requests_total", {"route": "/messages", "method": "POST", "status": "2xx"}),
        ("recado_http_request_seconds_count", {"route": "/messages", "method": "POST"}),
        ("recado_batch_commit_seconds_count", {"batch": "accept"}),
    ]
    before = [await value(service, name, **labels) for name, labels in names]
    await regular.reaches(await regular.send(phone()), "read")
    await regular.reaches(await regular.send(phone("9001")), "failed")

    async def risen() -> bool:
        after = [await value(service, name, **labels) for name, labels in names]
        more = [now - then for now, then in zip(after, before, strict=True)]
        return all(each >= least for each, least in zip(more, (2, 1, 1, 2, 2, 1), strict=True))

    await until(risen, "all is counted")


async def test_push_is_counted_and_its_service_shown(service: Service, api: Api) -> None:
    failed = {"channel": "push", "code": "unregistered"}
    names: list[tuple[str, dict[str, str]]] = [
        ("recado_messages_accepted_total", {"channel": "push"}),
        ("recado_messages_sent_total", {"channel": "push"}),
        ("recado_messages_failed_total", failed),
    ]
    before = [await value(service, name, **labels) for name, labels in names]
    app = await api.call("POST", "/v2/push/apps", {"name": "Metrics", "platforms": ["ios"]})
    devices = [
        await api.call(
            "POST", "/v2/push/tokens", {"appId": app["id"], "token": f"{os.urandom(4).hex()}{end}", "platform": "ios"}
        )
        for end in ("", "-unregistered")
    ]
    body = {"title": "a", "body": "b", "platforms": ["ios"], "tokenIds": [each["id"] for each in devices]}
    await api.call("POST", "/v2/push/messages", body, key=os.urandom(8).hex())

    async def counted() -> bool:
        now = [await value(service, name, **labels) for name, labels in names]
        return [more - less for more, less in zip(now, before, strict=True)] == [2, 1, 1]

    await until(counted, "two are accepted, one is sent, one failed", every=0.1)

    async def at_rest() -> bool:
        gateways = values(await asyncio.to_thread(scraped, service))["recado_gateway_calls_in_flight"]
        return ({"channel": "push", "env": "test", "gateway": "sandbox"}, 0.0) in gateways

    await until(at_rest, "no call is under way")
    shown = (await api.call("GET", "/v2/ops/providers"))["items"]
    (state,) = [each for each in shown if each["channel"] == "push"]
    assert (state["env"], state["provider"], state["gateway"], state["circuit"]) == (
        "test",
        "sandbox",
        "sandbox",
        "closed",
    )
    assert 0 < state["successRate"] < 1


async def test_a_failed_report_counts_as_a_failure(service: Service, regular: Customer) -> None:
    failed = {"channel": "chatapp", "code": "provider_error"}
    before = await value(service, "recado_messages_failed_total", **failed)
    await regular.reaches(await regular.send(phone("9002")), "failed")

    async def counted() -> bool:
        return await value(service, "recado_messages_failed_total", **failed) > before

    await until(counted, "the failure is counted")


async def test_a_restart_is_counted(service: Service, regular: Customer, api: Api, admin: Api) -> None:
    await regular.reaches(await regular.send(phone()), "read")
    before = await value(service, "recado_restarts_total", kind="Lane")
    lanes = [each["path"] for each in (await api.call("GET", "/v2/ops/actors"))["items"] if each["kind"] == "Lane"]
    (lane,) = [path for path in lanes if path.endswith(regular.number_id)]
    await admin.call("POST", "/v2/ops/actors/restart", {"path": lane})

    async def counted() -> bool:
        return await value(service, "recado_restarts_total", kind="Lane") > before

    await until(counted, "the restart is counted")


async def test_they_tell_of_nobody_and_no_label_grows(
    service: Service, token: str, admin_token: str, regular: Customer
) -> None:
    person = phone("9001")
    await regular.reaches(await regular.send(person), "failed")
    text = await asyncio.to_thread(scraped, service)
    organization = (await regular.api.call("GET", "/v2/organization"))["id"]
    for secret in (person[1:], regular.number_id, organization, token, admin_token, "msg_", "org_", "num_"):
        assert secret not in text
    labels: dict[tuple[str, str], set[str]] = {}
    for name, samples in values(text).items():
        for has, _ in samples:
            for label, content in has.items():
                labels.setdefault((name, label), set()).add(content)
    assert labels
    assert max(map(len, labels.values())) < MOST_VALUES


async def test_each_part_of_the_program_tells_something(service: Service, regular: Customer) -> None:
    await regular.reaches(await regular.send(phone()), "read")
    found: Any = values(await asyncio.to_thread(scraped, service))
    assert {
        "recado_actors", "recado_batch_rows_total", "recado_batch_rows_waiting",
        "recado_callbacks_large_waiting", "recado_callbacks_postponed",
        "recado_callbacks_waiting", "recado_database_answers", "recado_database_places", "recado_database_places_taken",
        "recado_event_loop_lag_seconds_bucket", "recado_gateway_calls_in_flight", "recado_gateway_circuits_open",
        "recado_gateway_tokens", "recado_mailbox_deepest", "recado_mailbox_messages",
        "recado_wallet_holds_refused_total", "recado_webhook_attempts_total", "recado_webhook_backlog",
        "recado_webhook_calls_in_flight",
    } <= found.keys()  # fmt: skip
    assert {labels["gateway"] for labels, _ in found["recado_gateway_tokens"]} >= {"own"}
    assert {labels["pool"] for labels, _ in found["recado_database_places"]} == {"requests", "hot", "bulk", "searches"}
