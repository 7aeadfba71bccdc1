"""The table of everything that the service serves: the routes of each resource, with the parts that they speak to."""

from collections.abc import Mapping
from importlib.metadata import version

from recado.assembly import Assembly
from recado.domain.core.errors import Unavailable
from recado.domain.core.page import CursorSigner
from recado.http.api.paging import Cursors
from recado.http.api.route import Route
from recado.http.routes.access.api_keys import api_key_routes
from recado.http.routes.access.audit import audit_routes
from recado.http.routes.access.organization import organization_routes
from recado.http.routes.access.people import people_routes
from recado.http.routes.audience.segment_routes import segment_routes
from recado.http.routes.audience.static_lists import static_list_routes
from recado.http.routes.batches.batches import batch_routes
from recado.http.routes.batches.campaigns import campaign_routes
from recado.http.routes.batches.resend import resend_routes
from recado.http.routes.billing.billing import billing_routes
from recado.http.routes.contacts.companies import company_routes
from recado.http.routes.contacts.contact_imports import contact_import_routes
from recado.http.routes.contacts.contacts import contact_routes
from recado.http.routes.contacts.document_reveal import document_reveal_routes
from recado.http.routes.inbound.callbacks import callback_routes
from recado.http.routes.inbound.sandbox_inbound import sandbox_inbound_routes
from recado.http.routes.inbound.sandbox_records import sandbox_record_routes
from recado.http.routes.messages.bulk import bulk_routes
from recado.http.routes.messages.messages import message_routes
from recado.http.routes.messages.reprocess import reprocess_routes
from recado.http.routes.senders.number_administration import number_administration_routes
from recado.http.routes.senders.number_health import HealthReader, number_health_routes
from recado.http.routes.senders.number_usage import number_usage_routes
from recado.http.routes.senders.numbers import number_routes
from recado.http.routes.service.service import service_routes
from recado.http.routes.templates.templates import template_routes
from recado.http.routes.webhooks.webhook_deliveries import webhook_delivery_routes
from recado.http.routes.webhooks.webhooks import webhook_routes
from recado.storage.access import accounts
from recado.storage.core.migrate import pending


def route_table(made: Assembly) -> tuple[Route, ...]:
    """Billing has routes only where it is enabled (C33)."""
    settings, installation, directories, system = made.settings, made.installation, made.directories, made.system
    db, ids, keys = installation.database, installation.ids, installation.key_ring
    cursors = Cursors(CursorSigner(installation.keys.cursor))
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
        *bulk_routes(acceptance=made.batch_acceptance),
        *batch_routes(database=db, movers=system.batches),
        *resend_routes(resends=made.resends),
        *campaign_routes(database=db),
        *contact_routes(database=db, ids=ids, people=made.people, cursors=cursors),
        *contact_import_routes(database=db, ids=ids, imports=made.people.imports),
        *company_routes(database=db, ids=ids, clock=made.clock, find_account=accounts.get),
        *reprocess_routes(database=db, acceptance=made.acceptance),
        *number_routes(database=db, ids=ids, keys=keys, provider_for=made.admin_for, changed=made.changed),
        *number_health_routes(health=HealthReader(db, clock=made.clock, refresh=made.refresh)),
        *number_usage_routes(database=db, organizations=directories.organizations),
        *template_routes(
            database=db, ids=ids, keys=keys, provider_for=made.reviewer_for, sync=made.sync, changed=made.changed
        ),
        *static_list_routes(database=db, ids=ids),
        *segment_routes(database=db, ids=ids, evaluation=system.evaluation, cursors=cursors),
        *sandbox_inbound_routes(database=db, numbers=directories.numbers, receiver=system.receipts),
        *sandbox_record_routes(database=db, ids=ids, changed=made.changed),
        *number_administration_routes(database=db, ids=ids, changed=made.changed),
        *organization_routes(database=db, ids=ids, random_bytes=installation.random_bytes, changed=made.changed),
        *api_key_routes(
            database=db,
            ids=ids,
            keys=directories.keys,
            ceilings=made.ceilings,
            random_bytes=installation.random_bytes,
            changed=made.changed,
        ),
        *document_reveal_routes(database=db, ids=ids, documents=made.people.documents),
        *people_routes(database=db, ids=ids, sessions=directories.sessions, random_bytes=installation.random_bytes),
        *webhook_routes(
            database=db,
            ids=ids,
            keys=keys,
            guard=made.guard,
            actors=made.webhooks,
            random_bytes=installation.random_bytes,
            changed=made.changed,
        ),
        *webhook_delivery_routes(database=db, ids=ids, keys=keys, cursors=cursors, changed=made.changed),
        *audit_routes(database=db, cursors=cursors),
        *(
            billing_routes(database=db, ids=ids, cursors=cursors, prices=directories.prices, changed=made.changed)
            if settings.billing_enabled
            else ()
        ),
        *callback_routes(providers=made.callback_providers, take=system.callbacks.take),
    )

    async def ready() -> Mapping[str, bool]:
        try:
            missing = await pending(db)
        except Unavailable:
            return {"database": False, "migrations": False}
        return {"database": not db.refuses_writes, "migrations": not missing}

    service = service_routes(routes, ready=ready, base_url=settings.address(), version=version("recado"))
    return (*routes, *service)
