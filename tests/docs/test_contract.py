"""docs/contract.md states every rule that something cites, and what it lists is what the program has."""

import re
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any, get_args
from unittest.mock import Mock

import pytest
import typer.main

from recado.actors.webhooks import webhook_dispatcher
from recado.actors.webhooks.webhooks import MOST_TESTS_WAITING, TESTS_AT_ONCE, TESTS_EACH
from recado.assembly import LOOKUPS_EACH, MOST_LOOKUPS_WAITING
from recado.channel_table import MOST_CALLS_WAITING, PART_OF_AN_ACCOUNT
from recado.channels.http.outbound_guard import LOOKUP_LIMIT, LOOKUPS_AT_ONCE
from recado.channels.http.outbound_http import MEDIA_CONNECTIONS, OTHER_CONNECTIONS
from recado.cli.program import app
from recado.config.limits import CLASSES_OF_CREDENTIALS, DEFAULT_LIMITS
from recado.domain.access.scopes import ALL_SCOPES
from recado.domain.audience.members import MAX_IDENTIFIERS, MAX_LISTS
from recado.domain.audience.segment import MAX_SEGMENTS
from recado.domain.channels.chatapp import GATES
from recado.domain.channels.exported import LONGEST_PERIOD as EXPORT_PERIOD
from recado.domain.channels.exported import MOST_ROWS, USUAL_ROWS
from recado.domain.core.errors import CODES
from recado.domain.email.sender import MAX_SENDERS
from recado.domain.email.template import MAX_TEMPLATES
from recado.domain.events.customer_event import LONGEST_PERIOD
from recado.domain.journeys.graph import MAX_STEPS
from recado.domain.journeys.journey import MAX_JOURNEYS
from recado.domain.journeys.problems import JourneyFault
from recado.domain.links.origin import MAX_ORIGIN_LINKS
from recado.domain.messages.message import FailureCode, WaitReason
from recado.domain.webhooks.webhook import MAX_SUBSCRIPTIONS
from recado.http.api.paging import MOST_SKIPPED, MOST_SKIPPED_MESSAGES
from recado.http.api.route import Access, Idempotency, Route
from recado.http.dispatch import PAGES, PAGES_OF_CALLER, SEARCHES, SEARCHES_OF_CALLER
from recado.http.openapi.document_texts import GROUPS
from recado.http.routes.access.account_models import AccountOut, SessionOut
from recado.http.routes.access.api_key_models import ApiKeyOut, RateClass
from recado.http.routes.access.api_keys import api_key_routes
from recado.http.routes.access.audit import audit_routes
from recado.http.routes.access.organization import organization_routes
from recado.http.routes.access.organization_models import AdministeredOrganizationOut
from recado.http.routes.access.people import people_routes
from recado.http.routes.audience.segments import segment_routes
from recado.http.routes.audience.static_lists import static_list_routes
from recado.http.routes.batches.batches import batch_routes
from recado.http.routes.batches.campaigns import CampaignOut, campaign_routes
from recado.http.routes.batches.resend import resend_routes
from recado.http.routes.billing.billing import billing_routes
from recado.http.routes.billing.wallet_models import CreditOut, LedgerEntryOut, TopUpOut, WalletOut
from recado.http.routes.billing.wallet_prices import PriceOut, PricesOut
from recado.http.routes.contacts.companies import company_routes
from recado.http.routes.contacts.company_models import CompanyOut
from recado.http.routes.contacts.contact_answers import ContactDetail, ContactField, OptedOutResult, OwnedGroupOut
from recado.http.routes.contacts.contact_imports import ImportOut, contact_import_routes
from recado.http.routes.contacts.contacts import contact_routes
from recado.http.routes.contacts.document_reveal import RevealedDocuments, document_reveal_routes
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.email import messages as email_messages
from recado.http.routes.email.message_models import CreatedEmail, EmailModel
from recado.http.routes.email.messages import email_routes
from recado.http.routes.email.mjml_document import PROCESSES
from recado.http.routes.email.sender_models import EmailSenderOut
from recado.http.routes.email.senders import email_sender_routes
from recado.http.routes.email.suppression_models import SuppressionOut
from recado.http.routes.email.suppressions import suppression_routes
from recado.http.routes.email.template_models import EmailPreviewOut, EmailTemplateOut
from recado.http.routes.email.templates import email_template_routes
from recado.http.routes.events.customer_event_models import CustomerEventOut
from recado.http.routes.events.customer_events import customer_event_routes
from recado.http.routes.flows.flow_models import FlowOut
from recado.http.routes.flows.flows import flow_routes
from recado.http.routes.inbound.callbacks import callback_routes
from recado.http.routes.inbound.sandbox_inbound import sandbox_inbound_routes
from recado.http.routes.inbound.sandbox_records import sandbox_record_routes
from recado.http.routes.journeys.execution_models import ExecutionDetail
from recado.http.routes.journeys.journey_models import JourneyItem, JourneyOut
from recado.http.routes.journeys.journeys import journey_routes
from recado.http.routes.links.opened_emails import opened_email_routes
from recado.http.routes.links.opened_links import opened_link_routes
from recado.http.routes.links.origin_link_models import OriginLinkOut
from recado.http.routes.links.origin_links import origin_link_routes
from recado.http.routes.media.downloads import download_routes
from recado.http.routes.media.media import media_routes
from recado.http.routes.media.media_models import MediaOut
from recado.http.routes.messages.bulk import bulk_routes
from recado.http.routes.messages.bulk_models import BatchOut
from recado.http.routes.messages.export_models import ExportedRow
from recado.http.routes.messages.exports import export_routes
from recado.http.routes.messages.message_models import MessageModel
from recado.http.routes.messages.messages import message_routes
from recado.http.routes.messages.reprocess import reprocess_routes
from recado.http.routes.ops.metrics import metrics_routes
from recado.http.routes.ops.ops import ops_routes
from recado.http.routes.ops.ops_models import ActorOut, NumberDetailOut, ProviderStateOut, WebhookStateOut
from recado.http.routes.push.app_models import PushAppOut
from recado.http.routes.push.apps import push_app_routes
from recado.http.routes.push.device_models import DeviceOut, DeviceRegistered
from recado.http.routes.push.devices import device_routes
from recado.http.routes.push.message_models import CreatedPush, PushModel, PushPreviewOut
from recado.http.routes.push.messages import push_message_routes
from recado.http.routes.rcs.rcs import rcs_routes
from recado.http.routes.senders.number_administration import number_administration_routes
from recado.http.routes.senders.number_health import HealthOut, number_health_routes
from recado.http.routes.senders.number_models import NumberOut
from recado.http.routes.senders.number_usage import number_usage_routes
from recado.http.routes.senders.numbers import number_routes
from recado.http.routes.service.service import service_routes
from recado.http.routes.sms.sms import sms_routes
from recado.http.routes.social.social_account_models import SocialAccountOut
from recado.http.routes.social.social_accounts import social_account_routes
from recado.http.routes.templates.template_models import TemplateOut
from recado.http.routes.templates.templates import template_routes
from recado.http.routes.webhooks.webhook_deliveries import webhook_delivery_routes
from recado.http.routes.webhooks.webhook_views import DeliveryDetail, WebhookOut
from recado.http.routes.webhooks.webhooks import webhook_routes
from recado.http.wire import spool
from recado.http.wire.connection import (
    HEAD_BYTES,
    HEAD_SECONDS,
    KEEP_ALIVE_SECONDS,
    LEAST_TAKEN,
    LONGEST_LINE,
    MOST_HEADERS,
    READING_SECONDS,
)
from recado.http.wire.deadlines import READ_SECONDS, SLOW_SECONDS, WRITE_SECONDS
from recado.http.wire.request_turns import BYTES_OF_PLACE, OF_NETWORKS, OF_ORGANIZATIONS
from recado.services.events import customer_events
from recado.services.imports import contact_imports
from recado.services.inbound.receipts import PARKED_FOR
from recado.services.media import inbound_copies, uploads
from recado.storage.audience.segment_evaluation import AT_ONCE, MOST_WAITING
from recado.storage.core.connections.postgres import LONG_SIZE, Database
from recado.storage.flows.flows import MAX_FLOWS
from recado.storage.templates.templates import MAX_OF_A_NUMBER

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contract.md").read_text("utf-8")
CITED_IN = ("src/**/*.py", "src/**/*.sql", "tests/**/*.py", "docs/**/*.md", "docs/**/*.py", "bench/**/*.py", "*.md")
# A rule's number; not the C3 of a percent-encoded byte.
CITATION = re.compile(r"(?<![%\w])C\d{1,2}(?:\.\d{1,2}){0,2}(?![\w])")
# Those of which no answer may be kept, or that may be repeated as they are (C6.2).
WITHOUT_KEYS = {
    "addListMembers",
    "removeListMembers",
    "previewEmailTemplate",
    "revealDocuments",
    "simulateJourney",
    "registerDevice",
    "optOutDevice",
    "openPushDispatch",
}
STATED = re.findall(r'<a id="(C[\d.]+)"></a>', PAGE)
POOL = signature(Database).parameters["pool_size"].default


def texts() -> Iterator[tuple[Path, str]]:
    for pattern in CITED_IN:
        for file in ROOT.glob(pattern):
            if "node_modules" not in file.parts:
                yield file.relative_to(ROOT), file.read_text("utf-8")


def section(number: str) -> str:
    """The text of one rule, up to the next one that is not inside it."""
    rest = PAGE.partition(f'<a id="{number}"></a>')[2]
    ends = [
        match.start()
        for match in re.finditer(r'<a id="(C[\d.]+)"></a>', rest)
        if not match.group(1).startswith(f"{number}.")
    ]
    return rest[: ends[0]] if ends else rest


def named(number: str) -> set[str]:
    """Everything in code style in a rule."""
    return set(re.findall(r"`([^`]+)`", section(number)))


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command of the program, by the words that name it."""
    inner = getattr(command or typer.main.get_command(app), "commands", None)
    if inner is None:
        yield path
        return
    for name, each in inner.items():
        yield from commands(each, (*path, name))


def routes() -> tuple[Route, ...]:
    """Every operation, with nothing behind it."""
    nothing: Any = Mock()
    dependencies = Dependencies(
        database=nothing,
        ids=nothing,
        clock=nothing,
        keys=nothing,
        cursors=nothing,
        random_bytes=bytes,
        directories=nothing,
        changed=nothing,
    )
    resources = (
        *message_routes(
            database=nothing,
            ids=nothing,
            acceptance=nothing,
            explainer=nothing,
            forced=nothing,
            effects=nothing,
            cursors=nothing,
        ),
        *sms_routes(dependencies, nothing),
        *rcs_routes(dependencies, nothing),
        *email_routes(dependencies, nothing),
        *bulk_routes(acceptance=nothing),
        *batch_routes(database=nothing, movers=nothing),
        *resend_routes(resends=nothing),
        *campaign_routes(database=nothing),
        *export_routes(dependencies),
        *company_routes(dependencies),
        *customer_event_routes(dependencies, events=nothing),
        *contact_routes(database=nothing, ids=nothing, people=nothing, cursors=nothing),
        *contact_import_routes(database=nothing, ids=nothing, imports=nothing),
        *reprocess_routes(database=nothing, acceptance=nothing),
        *number_routes(dependencies, provider_for=nothing),
        *number_administration_routes(dependencies),
        *number_health_routes(dependencies, health=nothing),
        *number_usage_routes(dependencies),
        *social_account_routes(dependencies, provider_for=nothing),
        *flow_routes(dependencies, provider_for=nothing),
        *template_routes(dependencies, provider_for=nothing, sync=nothing),
        *static_list_routes(dependencies),
        *segment_routes(dependencies, evaluation=nothing),
        *journey_routes(dependencies, entries=nothing, cancellation=nothing, tests=nothing, simulations=nothing),
        *origin_link_routes(dependencies, opener_for=nothing, clicks=nothing, link_base="http://l"),
        *opened_link_routes(tracked=nothing, origin=nothing, scanners=(), monotonic=nothing),
        *opened_email_routes(opens=nothing, unsubscriptions=nothing, scanners=(), monotonic=nothing),
        *suppression_routes(dependencies),
        *push_app_routes(dependencies, tell=nothing, devices_left=nothing),
        *device_routes(dependencies, registrations=nothing, opted_out=nothing),
        *push_message_routes(dependencies, sends=nothing, opens=nothing),
        *email_template_routes(dependencies, workers=nothing, changed=nothing),
        *email_sender_routes(dependencies, verification=nothing),
        *media_routes(database=nothing, senders=nothing, uploads=nothing, files=nothing, folder=None),
        *download_routes(database=nothing, blobs=nothing, provider=nothing, links=nothing, clock=nothing),
        *sandbox_inbound_routes(database=nothing, directories=nothing, receiver=nothing, media_for=nothing),
        *sandbox_record_routes(database=nothing, ids=nothing, keys=nothing, changed=nothing),
        *organization_routes(dependencies),
        *api_key_routes(dependencies, ceilings={}),
        *webhook_routes(dependencies, guard=nothing, actors=nothing),
        *webhook_delivery_routes(dependencies),
        *people_routes(dependencies),
        *document_reveal_routes(database=nothing, ids=nothing, documents=nothing),
        *audit_routes(dependencies),
        *ops_routes(dependencies, samples=nothing, states=nothing, tree=nothing, stream=nothing),
        *metrics_routes(nothing, token=None),
        *billing_routes(dependencies),
        *callback_routes(providers={("chatapp", "cloud"): nothing}, take=nothing, threads=nothing, apart=nothing),
    )
    return (*resources, *service_routes(resources, ready=nothing, base_url="http://here", version="0"))


def test_every_group_of_operations_is_described_in_the_document() -> None:
    assert {route.tag for route in routes() if route.documented} == set(GROUPS)


def test_every_rule_that_is_cited_is_stated() -> None:
    missing = sorted(
        f"{file}: {number}" for file, text in texts() for number in CITATION.findall(text) if number not in STATED
    )
    assert missing == [], "docs/contract.md lacks these rules, or the citations are wrong"


def test_citations_are_found_where_they_are() -> None:
    citations = [number for _, text in texts() for number in CITATION.findall(text)]
    assert len(citations) > 300
    assert CITATION.findall("as C14.5.2 and C31, not %C3%A4 or C0FFEE") == ["C14.5.2", "C31"]


def test_a_rule_is_stated_once_and_under_its_own_number() -> None:
    assert len(STATED) == len(set(STATED))
    for number in STATED:
        assert re.search(rf'<a id="{re.escape(number)}"></a>(?:\*\*)?{re.escape(number)}(?![.\d])', PAGE), number


def test_the_contents_name_every_section() -> None:
    contents = re.findall(r"\[(C\d+)\]\(#\1\)", PAGE.partition("Contents:")[2].partition("\n\n")[0])
    assert contents == [number for number in STATED if "." not in number]


def test_nothing_cites_a_document_that_is_not_here() -> None:
    elsewhere = re.compile(r"completion\.md|interface\.md|\bthe spec\b|\[shown\]")
    assert [str(file) for file, text in texts() if file.name != Path(__file__).name and elsewhere.search(text)] == []


def test_every_operation_stands_on_the_page_with_its_scope() -> None:
    for route in routes():
        if not route.documented:
            continue
        row = re.search(rf"^\| {route.method} {re.escape(route.path)} \|.*$", PAGE, re.MULTILINE)
        assert row, f"{route.method} {route.path}"
        if route.scope is not None:
            assert route.scope in row.group(), row.group()


def test_every_operation_of_the_page_exists() -> None:
    known = {f"{route.method} {route.path}" for route in routes()}
    listed = re.findall(r"^\| ((?:GET|POST|PUT|PATCH|DELETE) /\S+) \|", PAGE, re.MULTILINE)
    assert len(listed) > 30
    assert set(listed) - known == set()


def test_every_post_of_a_key_takes_an_idempotency_key() -> None:
    for route in routes():
        if route.method == "POST" and route.operation_id not in WITHOUT_KEYS:
            assert (route.idempotency is not Idempotency.NONE) == (route.access is Access.KEY), route.path


def test_every_code_stands_under_its_status() -> None:
    rows = dict(re.findall(r"^\| (\d{3}) \| (.*)$", section("C4.2"), re.MULTILINE))
    for code, entry in CODES.items():
        assert f"`{code}`" in rows[str(entry.status)], code
        assert rows[str(entry.status)].startswith(f"`{entry.kind}`")


def test_every_scope_and_no_other_is_named() -> None:
    scopes = {word for word in named("C3.2") if re.fullmatch(r"[a-z]+:[a-z]+", word)}
    assert scopes == ALL_SCOPES


def test_every_problem_of_a_journey_is_named() -> None:
    assert {word for word in named("C9.14") if re.fullmatch(r"[A-Z]+(_[A-Z]+)+|CICLO", word)} == set(JourneyFault)


def test_every_reason_and_failure_is_named() -> None:
    assert {reason.value for reason in WaitReason} <= named("C14.6")
    assert {code.value for code in FailureCode} <= named("C15.4")


def test_the_reasons_of_waits_stand_in_the_order_of_the_gates() -> None:
    told = re.findall(r"^\| `(\w+)` \|", section("C14.6"), re.MULTILINE)
    reasons = [*dict.fromkeys(gate.reason for gate in GATES.gates)]
    assert [reason for reason in told if reason in reasons] == reasons


def test_every_command_is_named() -> None:
    told = set()
    for text in re.findall(r"`recado ([a-z |]+?)(?: FILE)?`", section("C35")):
        *group, names = text.split()
        told |= {(*group, name) for name in names.split("|")}
    assert told == set(commands())


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("Webhook subscriptions per environment", f"{MAX_SUBSCRIPTIONS}"),
        ("Templates per number", f"{MAX_OF_A_NUMBER}"),
        ("Flows per number", f"{MAX_FLOWS}"),
        ("Templates of e-mails per environment", f"{MAX_TEMPLATES}"),
        (
            "Sends of e-mail under way",
            f"{email_messages.AT_ONCE} / {email_messages.AT_ONCE_EACH}; {email_messages.MOST_WAITING:,} of",
        ),
        ("MJML that is compiled at a time", f"{PROCESSES} / 1, in a process"),
        ("Period of a list of customer events", f"{LONGEST_PERIOD.days} days"),
        ("Period of an export", f"{EXPORT_PERIOD.days} days / {USUAL_ROWS} / {MOST_ROWS:,}"),
        ("Customer events that wait to be stored", f"{customer_events.MOST_WAITING:,};"),
        (
            "Companies / origin links / senders of e-mail per environment",
            f"100,000 / {MAX_ORIGIN_LINKS:,} / {MAX_SENDERS}",
        ),
        ("Lists / segments per environment", f"{MAX_LISTS:,} / {MAX_SEGMENTS}"),
        ("Journeys of an environment that are not archived / steps of one", f"{MAX_JOURNEYS} / {MAX_STEPS}"),
        ("Identifiers of a call on the members of a list", f"{MAX_IDENTIFIERS:,}"),
        ("`skip`", f"{MOST_SKIPPED:,}; of messages {MOST_SKIPPED_MESSAGES:,}"),
        ("Pages that are read and rendered", f"{PAGES} / {PAGES_OF_CALLER}, of them"),
        ("Pages that are read and rendered", f"of them searches {SEARCHES} / {SEARCHES_OF_CALLER}:"),
        ("Answer to a request", f"{READ_SECONDS:.0f} s reads, {WRITE_SECONDS:.0f} s writes;"),
        ("Connections of the database", f"{POOL // 2} of the {POOL} for requests, one of {LONG_SIZE} for searches"),
        ("Imports that are being read", f"in all {contact_imports.READ_AT_ONCE} / {AT_ONCE} / {TESTS_AT_ONCE},"),
        ("Imports that are being read", f"of an organization 1 / 1 / {TESTS_EACH};"),
        ("Imports that are being read", f"{contact_imports.MOST_WAITING} / {MOST_WAITING} / {MOST_TESTS_WAITING} more"),
        (
            "Calls to a provider that are no sends",
            f"{OTHER_CONNECTIONS} / {OTHER_CONNECTIONS // PART_OF_AN_ACCOUNT}, and",
        ),
        (
            "Calls to a provider that are no sends",
            f"media {MEDIA_CONNECTIONS} / {MEDIA_CONNECTIONS // PART_OF_AN_ACCOUNT},",
        ),
        ("Calls to a provider that are no sends", f"while {MOST_CALLS_WAITING} of its account wait"),
        ("Names of webhook addresses", f"{LOOKUPS_AT_ONCE} / {LOOKUPS_EACH}, and {LOOKUPS_EACH} more of those"),
        ("Names of webhook addresses", f"for {LOOKUP_LIMIT:.0f} s; as many as {MOST_LOOKUPS_WAITING} more"),
        ("Request head / idle time", f"{HEAD_SECONDS:.0f} s / "),
        ("A connection without a request", f"{KEEP_ALIVE_SECONDS:.0f} s / {READING_SECONDS:.0f} s;"),
        (
            f"A connection without a request / an answer of which its client takes less than {LEAST_TAKEN // 1024} KiB",
            "",
        ),
        ("A request's head", f"{HEAD_BYTES // 1024} KiB / {LONGEST_LINE:,} bytes / {MOST_HEADERS};"),
        ("Uploads that are stored", f"{uploads.UPLOADS} / {uploads.UPLOADS_OF_ONE};"),
        ("Media that came and is copied", f"{inbound_copies.AT_ONCE} / {inbound_copies.OF_ONE};"),
        ("Answer to a request", f"uploads of media {SLOW_SECONDS:.0f} s;"),
        ("Uploads read at once", f"{spool.MOST_AT_ONCE} / {spool.MOST_OF_ONE};"),
        (
            "Requests that begin in one turn",
            (
                f"{OF_NETWORKS} / {OF_ORGANIZATIONS}; a body takes one place more of the {OF_ORGANIZATIONS} for each "
                f"{BYTES_OF_PLACE // 1024} KiB"
            ),
        ),
        ("Statements that read deliveries", f"{webhook_dispatcher.READ_AT_ONCE} / {webhook_dispatcher.READ_EACH}, "),
        ("Reports of unknown messages", f"dropped after {PARKED_FOR.seconds // 60} min"),
    ],
)
def test_a_limit_is_stated_with_the_number_that_is_in_force(limit: str, value: str) -> None:
    (row,) = re.findall(rf"^\| {re.escape(limit)}[^|]*\| (.*) \|$", PAGE, re.MULTILINE)
    assert value in row


def test_the_request_limits_are_those_in_force() -> None:
    listed = re.findall(r"^\| `(\w+)` \| .* \| ([\d,]+) \| ([\d,]+) \|$", section("C6.1"), re.MULTILINE)
    assert len(listed) == 8
    for name, refill, capacity in listed:
        assert DEFAULT_LIMITS[name] == (int(refill.replace(",", "")), int(capacity.replace(",", "")))
    assert set(DEFAULT_LIMITS) <= named("C6.1")
    assert set(get_args(RateClass)) == set(CLASSES_OF_CREDENTIALS)


@pytest.mark.parametrize(
    ("number", "model"),
    [
        ("C8.1", MediaOut),
        ("C11.1", TemplateOut),
        ("C14.1", NumberOut),
        ("C14.3", HealthOut),
        ("C15.1", MessageModel),
        ("C15.5", BatchOut),
        ("C15.6", CampaignOut),
        ("C12.1", ContactDetail),
        ("C12.5", OptedOutResult),
        ("C12.7", ImportOut),
        ("C12.8", ContactField),
        ("C12.9", OwnedGroupOut),
        ("C18", ExportedRow),
        ("C19", FlowOut),
        ("C20", CompanyOut),
        ("C21", CustomerEventOut),
        ("C22.2", DeviceOut),
        ("C22.2", DeviceRegistered),
        ("C22.3", CreatedPush),
        ("C22.3", PushModel),
        ("C22.1", PushPreviewOut),
        ("C22.4", PushAppOut),
        ("C23.1", WebhookOut),
        ("C23.3", DeliveryDetail),
        ("C12.4", RevealedDocuments),
        ("C24.1", AdministeredOrganizationOut),
        ("C24.2", AccountOut),
        ("C24.3", SessionOut),
        ("C24.1", CreditOut),
        ("C25.1", LedgerEntryOut),
        ("C25.1", PriceOut),
        ("C25.1", PricesOut),
        ("C25.1", TopUpOut),
        ("C25.1", WalletOut),
        ("C24.4", ApiKeyOut),
        ("C27.4", OriginLinkOut),
        ("C10.1", EmailModel),
        ("C10.1", CreatedEmail),
        ("C10.4", EmailTemplateOut),
        ("C10.4", EmailPreviewOut),
        ("C10.4", EmailSenderOut),
        ("C26", SocialAccountOut),
        ("C10.5", SuppressionOut),
        ("C9.2", JourneyOut),
        ("C9.2", JourneyItem),
        ("C9.10", ExecutionDetail),
        ("C34.1", ActorOut),
        ("C34.1", ProviderStateOut),
        ("C34.1", WebhookStateOut),
        ("C34.2", NumberDetailOut),
    ],
)
def test_every_field_of_a_record_is_named(number: str, model: Any) -> None:
    words = set(re.findall(r"\w+", section(number)))
    fields = {info.alias or name for name, info in model.model_fields.items()}
    assert fields - words == set()
