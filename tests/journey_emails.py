"""What journeys send e-mail with: the rules of its messages, templates, and the e-mails as they leave."""

import os
from typing import Any

from recado.domain.core.clock import Clock
from recado.domain.core.ids import EMAIL_TEMPLATE, IdSource
from recado.domain.email.html_links import HtmlPlaces, places_of
from recado.domain.email.public_tokens import PublicTokens
from recado.domain.email.rendering import EmailPart, names_in
from recado.domain.links.tracked import MessageLinks
from recado.services.email.departing import DepartingEmails
from recado.services.email.sendable import SendableMailboxes, SendableTemplates
from recado.services.email.tracking import EmailTracking
from recado.services.messages.email_rules import EmailRules
from recado.storage.core.connections.postgres import Database
from recado.storage.email.templates import TEMPLATES, EmailTemplate

LINK_BASE = "https://links.example.org"
SIMULATOR = "simulator.example.org"
TOKENS = PublicTokens(b"k" * 32)


async def _elsewhere(html: str, *, caller: str) -> HtmlPlaces:
    return places_of(html)


def tracking() -> EmailTracking:
    def links(known: Any = ()) -> MessageLinks:
        return MessageLinks(LINK_BASE, os.urandom, known)

    return EmailTracking(link_base=LINK_BASE, tokens=TOKENS, links=links, elsewhere=_elsewhere)


def email_rules(database: Database, templates: SendableTemplates, *, clock: Clock, **shared: Any) -> EmailRules:
    """`shared`: what the rules of all channels are made of."""
    return EmailRules(
        database=database,
        simulator_domain=SIMULATOR,
        tracking=tracking(),
        templates=templates,
        mailboxes=SendableMailboxes(database, clock=clock),
        clock=clock,
        **shared,
    )


def departing(database: Database, clock: Clock) -> DepartingEmails:
    return DepartingEmails(
        database,
        clock=clock,
        templates=SendableTemplates(database, clock=clock),
        mailboxes=SendableMailboxes(database, clock=clock),
        tracking=tracking(),
        simulator_domain=SIMULATOR,
    )


async def add_email_template(
    database: Database,
    ids: IdSource,
    organization_id: str,
    *,
    env: str = "test",
    name: str = "welcome",
    subject: str = "Hi {{name}}",
    html: str = '<p>Hello {{name}}, <a href="https://example.com/go">go</a></p>',
) -> str:
    template_id = ids.new(EMAIL_TEMPLATE)
    parts = {EmailPart.SUBJECT: subject, EmailPart.HTML: html}
    used = {part.value: list(names_in(text)) for part, text in parts.items()}
    template = EmailTemplate(
        organization_id=organization_id,
        env=env,
        id=template_id,
        name=name,
        subject=subject,
        html=html,
        variables=tuple({"name": each} for each in dict.fromkeys(name for names in used.values() for name in names)),
        placeholders=used,
        created_by_id="key_" + "0" * 21,
        updated_at=ids.moment_of(template_id),
    )
    async with database.transaction() as connection:
        await TEMPLATES.insert(connection, template)
    return template_id
