"""Templates and senders of e-mail as messages are sent with them: read once for many, for some seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from recado.domain.core.clock import Clock
from recado.domain.email.mailbox import NamedAddress
from recado.domain.email.rendering import EmailPart, EmailParts, Value
from recado.domain.email.template import EmailTemplateStatus
from recado.domain.email.template_text import TemplateText, TextSource
from recado.engine.turns import turns
from recado.storage.core.directory import Directory
from recado.storage.core.statements.rows import Executor
from recado.storage.email import senders
from recado.storage.email.senders import EmailSender
from recado.storage.email.templates import TEMPLATES, EmailTemplate

TemplateKey = tuple[str, str, str]
"""Organization, environment, template."""
MailboxKey = tuple[str, str, str | None]
"""Organization, environment, and the address that it is to cover; None: the default sender is asked for."""

NO_REPLY: Final = "no-reply"
"""The address that a domain sends from where nobody names one."""
LONG: Final = 16 * 1024  # characters: a shorter template is rendered in less than a step of the loop
MOST_TEMPLATES, MOST_KEPT = 1_000, 16 * 1024 * 1024  # templates in memory, and their characters
MOST_MAILBOXES: Final = 1_000
PARTS: Final = 4  # an organization has a quarter of either, and of the mailboxes


def usual_address(sender: EmailSender) -> str:
    """What a sender sends from where nobody names an address."""
    return sender.address or f"{NO_REPLY}@{sender.domain}"


@dataclass(frozen=True, slots=True)
class SendableTemplate:
    """One that is active. `size`: characters of its longer parts. `text`: of its HTML, where it has none of its own."""

    parts: EmailParts
    size: int
    text: TemplateText | None

    @classmethod
    def of(cls, parts: EmailParts, size: int) -> Self:
        has_text = EmailPart.TEXT in parts.parts
        return cls(parts, size, None if has_text else TemplateText(parts.parts[EmailPart.HTML]))

    @property
    def long(self) -> bool:
        return self.size > LONG

    @property
    def weight(self) -> int:
        """Characters that it may come to hold: a text is made of its HTML with links that are tracked, and without."""
        return self.size if self.text is None else 4 * self.size

    def text_source(self, values: Mapping[str, Value]) -> TextSource | None:
        """By which the text of an e-mail with these values is made, unless the template has one."""
        return None if self.text is None else TextSource(self.text, self.parts.texts(values))


class SendableTemplates(Directory[TemplateKey, SendableTemplate]):
    """A change is seen at once where `changed` tells it, else within 5 seconds.

    Those that are used last stay, as many as the two bounds let (C31).
    """

    def __init__(self, executor: Executor, *, clock: Clock) -> None:
        self._executor = executor
        super().__init__(
            self._load_one, clock=clock, capacity=MOST_TEMPLATES, most=MOST_KEPT,
            weight=lambda template: template.weight, owner=lambda key: key[0], parts=PARTS,
        )  # fmt: skip

    def changed(self, template: EmailTemplate) -> None:
        """Its change is committed."""
        self.forget((template.organization_id, template.env, template.id))

    async def _load_one(self, key: TemplateKey) -> SendableTemplate | None:
        template = await TEMPLATES.get(self._executor, *key)
        if template is None or template.status is not EmailTemplateStatus.ACTIVE:
            return None
        if template.size > LONG:  # it takes milliseconds to take one apart
            await turns.next()
        return SendableTemplate.of(template.content(), template.size)


class SendableMailboxes(Directory[MailboxKey, NamedAddress]):
    """Whom e-mails are from, of verified senders. A change is seen at once after `clear`, else within 5 seconds."""

    def __init__(self, executor: Executor, *, clock: Clock) -> None:
        self._executor = executor
        super().__init__(self._load_one, clock=clock, capacity=MOST_MAILBOXES, owner=lambda key: key[0], parts=PARTS)

    async def _load_one(self, key: MailboxKey) -> NamedAddress | None:
        organization_id, env, address = key
        sender = await senders.sending(self._executor, organization_id, env, address)
        if sender is None:
            return None
        return NamedAddress(address or usual_address(sender), sender.display_name)
