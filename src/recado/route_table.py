"""The table of everything that the service serves: the routes of each resource, with the parts that they speak to."""

from collections.abc import Mapping
from importlib.metadata import version

from recado.actors.ops.kept import Kept
from recado.assembly import Assembly
from recado.channel_table import CHANNELS
from recado.domain.core.errors import Unavailable
from recado.domain.core.page import CursorSigner
from recado.http.api.paging import Cursors
from recado.http.api.route import Route
from recado.http.routes.access.api_keys import api_key_routes
from recado.http.routes.access.audit import audit_routes
from recado.http.routes.access.organization import organization_routes
from recado.http.routes.access.people import people_routes
from recado.http.routes.audience.segments import segment_routes
from recado.http.routes.audience.static_lists import static_list_routes
from recado.http.routes.batches.batches import batch_routes
from recado.http.routes.batches.campaigns import campaign_routes
from recado.http.routes.batches.resend import resend_routes
from recado.http.routes.billing.billing import billing_routes
from recado.http.routes.contacts.companies import company_routes
from recado.http.routes.contacts.contact_imports import contact_import_routes
from recado.http.routes.contacts.contacts import contact_routes
from recado.http.routes.contacts.document_reveal import document_reveal_routes
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.email.senders import email_sender_routes
from recado.http.routes.email.suppressions import suppression_routes
from recado.http.routes.email.templates import email_template_routes
from recado.http.routes.events.customer_events import customer_event_routes
from recado.http.routes.flows.flows import flow_routes
from recado.http.routes.inbound.callbacks import callback_routes
from recado.http.routes.inbound.sandbox_inbound import sandbox_inbound_routes
from recado.http.routes.inbound.sandbox_records import sandbox_record_routes
from recado.http.routes.journeys.journeys import journey_routes
from recado.http.routes.links.opened_emails import opened_email_routes
from recado.http.routes.links.opened_links import opened_link_routes
from recado.http.routes.links.origin_links import origin_link_routes
from recado.http.routes.media.downloads import download_routes
from recado.http.routes.media.media import media_routes
from recado.http.routes.messages.bulk import bulk_routes
from recado.http.routes.messages.exports import export_routes
from recado.http.routes.messages.messages import message_routes
from recado.http.routes.messages.reprocess import reprocess_routes
from recado.http.routes.ops.metrics import Measured, Metrics, metrics_routes
from recado.http.routes.ops.ops import ops_routes
from recado.http.routes.push.apps import push_app_routes
from recado.http.routes.push.devices import device_routes
from recado.http.routes.push.messages import push_message_routes
from recado.http.routes.senders.number_administration import number_administration_routes
from recado.http.routes.senders.number_health import HealthReader, number_health_routes
from recado.http.routes.senders.number_usage import number_usage_routes
from recado.http.routes.senders.numbers import number_routes
from recado.http.routes.service.service import service_routes
from recado.http.routes.social.social_accounts import social_account_routes
from recado.http.routes.templates.templates import template_routes
from recado.http.routes.webhooks.webhook_deliveries import webhook_delivery_routes
from recado.http.routes.webhooks.webhooks import webhook_routes
from recado.storage.core.upkeep.migrate import pending
from recado.storage.ops import ops


def route_table(made: Assembly, *, document_at_once: bool = False) -> tuple[Route, ...]:
    """Billing has routes only where it is enabled (C33). `document_at_once`: as of `service_routes`."""
    installation, system = made.installation, made.system
    db, ids, people = installation.database, installation.ids, made.people
    cursors = Cursors(CursorSigner(installation.keys.cursor))
    dependencies = Dependencies(
        database=db,
        ids=ids,
        clock=made.clock,
        keys=installation.key_ring,
        cursors=cursors,
        random_bytes=installation.random_bytes,
        directories=made.directories,
        changed=made.changed,
        prices=made.directories.prices if made.settings.billing_enabled else None,
        link_base=made.settings.link_address,
        explain=system.explainer.explain,
    )
    routes = (
        *message_routes(
            database=db,
            ids=ids,
            acceptance=made.acceptance,
            explainer=system.explainer,
            forced=system.sending.forced,
            effects=system.consequences,
            cursors=cursors,
        ),
        *bulk_routes(
            acceptance=made.batch_acceptance,
            bodies={each.channel: each.batch_body for each in CHANNELS if each.batch_body is not None},
        ),
        *batch_routes(database=db, movers=system.batches),
        *resend_routes(resends=made.resends),
        *campaign_routes(database=db),
        *export_routes(dependencies),
        *contact_routes(database=db, ids=ids, people=people, cursors=cursors),
        *contact_import_routes(database=db, ids=ids, imports=people.imports),
        *company_routes(dependencies),
        *customer_event_routes(dependencies, events=made.customer_events),
        *reprocess_routes(database=db, acceptance=made.acceptance),
        *number_routes(dependencies, provider_for=made.admin_for),
        *number_health_routes(
            dependencies, health=HealthReader(db, clock=made.clock, refresh=made.refresh, trouble=system.trouble)
        ),
        *number_usage_routes(dependencies),
        *social_account_routes(dependencies, provider_for=made.connector_for),
        *flow_routes(dependencies, provider_for=made.flow_admin_for),
        *template_routes(dependencies, provider_for=made.reviewer_for, sync=made.sync),
        *static_list_routes(dependencies),
        *suppression_routes(dependencies),
        *email_template_routes(dependencies, workers=made.mjml_workers, changed=made.email_templates.changed),
        *email_sender_routes(dependencies, verification=made.sender_verification),
        *push_app_routes(dependencies, tell=lambda _: None, devices_left=made.push_removals.hint),
        *device_routes(dependencies, registrations=made.registrations, opted_out=made.push_departures.opted_out),
        *push_message_routes(dependencies, sends=made.push_sends, opens=made.push_opens),
        *segment_routes(dependencies, evaluation=system.evaluation),
        *journey_routes(
            dependencies,
            entries=made.journey_entries,
            cancellation=made.cancellation,
            tests=made.journey_tests,
            simulations=made.simulations,
        ),
        *origin_link_routes(
            dependencies,
            opener_for=made.opener_for,
            clicks=made.origin_clicks,
            link_base=made.settings.link_address,
        ),
        *opened_link_routes(
            tracked=made.tracked_clicks,
            origin=made.origin_clicks,
            scanners=made.settings.scanners,
            monotonic=made.clock.monotonic,
        ),
        *opened_email_routes(
            opens=made.email_opens,
            unsubscriptions=made.unsubscriptions,
            scanners=made.settings.scanners,
            monotonic=made.clock.monotonic,
        ),
        *media_routes(
            database=db,
            senders=made.media_use.senders,
            uploads=made.uploads,
            files=made.files,
            folder=str(made.settings.data_dir) if made.settings.embedded else None,
        ),
        *download_routes(
            database=db, blobs=made.blobs, provider=made.provider_media, links=made.links, clock=made.clock
        ),
        *sandbox_inbound_routes(
            database=db, directories=made.directories, receiver=system.receipts, media_for=made.media_for
        ),
        *sandbox_record_routes(database=db, ids=ids, keys=installation.key_ring, changed=made.changed),
        *number_administration_routes(dependencies),
        *organization_routes(dependencies),
        *api_key_routes(dependencies, ceilings=made.ceilings),
        *document_reveal_routes(database=db, ids=ids, documents=people.documents),
        *people_routes(dependencies),
        *webhook_routes(dependencies, guard=made.guard, actors=made.webhooks),
        *webhook_delivery_routes(dependencies),
        *audit_routes(dependencies),
        *ops_routes(
            dependencies,
            samples=made.samples,
            states=system.number_states,
            tree=system.actor_tree,
            stream=made.stream,
        ),
        *(billing_routes(dependencies) if made.settings.billing_enabled else ()),
        *(route for each in CHANNELS for route in each.routes(dependencies, made.acceptance)),
        *callback_routes(
            providers=made.callback_providers,
            take=system.callbacks.take,
            threads=made.callback_threads,
            apart=made.callback_workers,
        ),
    )

    metrics = Metrics(
        Measured(
            clock=made.clock,
            requests=made.figures,
            activity=system.activity,
            context=system.lane_context,
            push=made.push_states.now,
            root=system.root,
            batches=made.batches,
            restarts=made.runtime.restarts,
            webhooks=made.webhooks.dispatcher,
            refused=lambda: system.admission.refused,
            postponed=lambda: system.callbacks.postponed.count,
            fronts=lambda: made.fronts(),
            others=system.others_figures,
            database=db,
            loop=made.loop_watch,
            queues=Kept(lambda _: ops.queue_totals(db.bulk), clock=made.clock),
            backlogs=Kept(lambda _: ops.backlogs(db.bulk), clock=made.clock),
        )
    )
    token = made.settings.metrics_token
    routes += metrics_routes(metrics, token=None if token is None else token.get_secret_value())

    async def ready() -> Mapping[str, bool]:
        try:
            missing = await pending(db)
        except Unavailable:
            return {"database": False, "migrations": False}
        return {"database": not db.refuses_writes, "migrations": not missing}

    service = service_routes(
        routes,
        ready=ready,
        base_url=made.settings.address(),
        version=version("recado"),
        document_at_once=document_at_once,
    )
    return (*routes, *service)
