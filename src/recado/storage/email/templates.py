"""Templates of e-mails (C10.4). `version` counts changes of the content, `revision` all that a reader can see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from recado.domain.core.ids import Identified
from recado.domain.core.names import name_key
from recado.domain.email.rendering import EmailPart, EmailParts
from recado.domain.email.template import MAX_TEMPLATES, EmailTemplateStatus
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Limit, Table, Unique


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailTemplate(Identified):
    """One template. `placeholders`: the names that each part uses, by its name; of a list the content is not read."""

    organization_id: str
    env: str
    id: str
    name: str
    subject: str = field(repr=False)
    html: str = field(repr=False)
    text: str | None = field(default=None, repr=False)
    mjml: str | None = field(default=None, repr=False)
    variables: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    placeholders: Mapping[str, Sequence[str]] = field(repr=False)
    status: EmailTemplateStatus = EmailTemplateStatus.ACTIVE
    version: int = 1
    created_by_id: str
    revision: int = 1
    updated_at: datetime

    def content(self) -> EmailParts:
        """What it is rendered with: taken apart, which takes milliseconds for a long one."""
        parts = {EmailPart.SUBJECT: self.subject, EmailPart.HTML: self.html, EmailPart.TEXT: self.text}
        return EmailParts(parts, {each["name"]: each.get("example") for each in self.variables})

    @property
    def size(self) -> int:
        """Characters of its longer parts."""
        return len(self.html) + len(self.text or "")


TEMPLATES: Final = Table(
    "email_templates",
    EmailTemplate,
    "template",
    own=load("email_templates"),
    convert={"status": EmailTemplateStatus, "variables": tuple},
    derived={"name_key": lambda template: name_key(template.name)},
    unseen=("placeholders",),
    unique=Unique(("name_key",), "EMAIL_TEMPLATE_NAME_TAKEN", "Another e-mail template has this name.", "templateId"),
    limit=Limit(MAX_TEMPLATES, "e-mail templates that are not archived"),
    wide=("variables",),
)
