"""The message that a step makes, by the rules of every message of its channel (C9.5, C9.8.3, C9.10)."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from recado.domain.channels.chatapp import CHATAPP, TEMPLATE
from recado.domain.channels.email import EMAIL
from recado.domain.channels.rcs import RCS, RcsRoute
from recado.domain.channels.sms import SMS, SmsRoute
from recado.domain.contacts.consent import refusal_to_send
from recado.domain.contacts.contact import Contact
from recado.domain.core.errors import Problem, Unavailable
from recado.domain.core.phones import recipient_hash
from recado.domain.journeys.execution import SkipReason
from recado.domain.journeys.graph import StepSignal
from recado.domain.journeys.journey import Hindrance
from recado.domain.journeys.outcomes import SendMessage
from recado.domain.journeys.runnable import RunnableJourney
from recado.domain.journeys.steps import ChatappSend, EmailSend, RcsSend, SignalCondition, SmsSend
from recado.domain.messages.message import Priority
from recado.domain.senders.number import NumberStatus
from recado.domain.templates.template import TemplateCategory, TemplateStatus
from recado.domain.templates.template_content import variable_count
from recado.services.email.sendable import SendableTemplates
from recado.services.journeys.standing import Hindered, PendingSend, Standing
from recado.services.messages.acceptance import ChannelRules
from recado.services.messages.draft import MessageDraft
from recado.services.messages.email_rules import QueuedEmailContent
from recado.services.messages.rcs_content import RcsForm
from recado.services.messages.sms_content import SmsForm
from recado.storage.access.organizations import OrganizationDirectory
from recado.storage.messages.messages import ConsentCheck
from recado.storage.senders.numbers import NumberDirectory
from recado.storage.templates.templates import TemplateDirectory

_BY_FIELD: Final = {
    "/numberId": SkipReason.NUMBER_UNAVAILABLE,
    "/templateId": SkipReason.TEMPLATE_UNAVAILABLE,
    "/route": SkipReason.NUMBER_UNAVAILABLE,
    "/from": SkipReason.NUMBER_UNAVAILABLE,
}
"""What a refusal of a message is to its journey, by the field that it is about; else its content is not valid."""

_WITHOUT_APPROVAL: Final = frozenset({TemplateStatus.REJECTED, TemplateStatus.DISABLED})
"""The states that a template does not leave by itself, as a paused one does: journeys that send it pause (C9.8.4)."""


class StepMessages:
    """Makes them. `rules`: of the channels that there are; a step of another channel is left out."""

    def __init__(
        self,
        rules: Iterable[ChannelRules],
        *,
        numbers: NumberDirectory,
        templates: TemplateDirectory,
        organizations: OrganizationDirectory,
        emails: SendableTemplates,
    ) -> None:
        self._rules = {each.channel: each for each in rules}
        self._numbers = numbers
        self._templates = templates
        self._organizations = organizations
        self._emails = emails

    async def make(self, standing: Standing, decision: SendMessage) -> PendingSend | SkipReason | Hindered:
        """The message of an execution whose contact is there, or why there is none. Raises `Unavailable`."""
        draft = await self._draft(standing, decision)
        if not isinstance(draft, MessageDraft):
            return draft
        rules = self._rules.get(draft.channel)
        if rules is None or draft.env not in rules.sends_in:
            return SkipReason.NUMBER_UNAVAILABLE
        try:
            new = rules.at_once(draft) or await rules.read(draft)
        except Unavailable:
            raise
        except Problem as refusal:
            return _skipped(refusal)
        if new.lacks is not None:
            return SkipReason.NUMBER_UNAVAILABLE
        granted_only = (await self._organizations.of_caller(new.organization_id)).require_granted_for_marketing
        contact = standing.contact
        if contact is None or refusal_to_send(
            contact.opt_in_status, registered=standing.registered, granted_only=granted_only
        ):
            return SkipReason.CONTENT_INVALID
        # Whatever its kind (C12.5.4): asked once more in its commit and in its claim.
        new.consent = ConsentCheck.GRANTED if granted_only else ConsentCheck.NOT_REFUSED
        if isinstance(contact, Contact) and new.recipient != contact.phone:
            new.contact_hash = recipient_hash(new.organization_id, contact.phone)
        new.owner = standing.execution.journey_id
        if standing.execution.teste:  # it takes its turn by itself: neither a pause nor quiet hours hold it (C9.9)
            new.owner, new.obeys_quiet_hours = standing.execution.id, False
        return PendingSend(new, decision.next)

    async def _draft(self, standing: Standing, decision: SendMessage) -> MessageDraft | SkipReason | Hindered:
        match decision.content:
            case ChatappSend(template_id, number_id):
                where = (standing.execution.organization_id, standing.execution.env)
                number = await self._numbers.get((*where, number_id))
                if (
                    number is None
                    or number.status is NumberStatus.DISCONNECTED
                    or number.partner_removed_at is not None
                ):
                    return _hindered(standing, Hindrance.NUMBER_UNAVAILABLE, number_id)
                template = await self._templates.get((*where, template_id))
                if template is None or template.status in _WITHOUT_APPROVAL:
                    return _hindered(standing, Hindrance.TEMPLATE_UNAVAILABLE, template_id)
                names = [str(n) for n in range(1, variable_count(template.components) + 1)]
                if not decision.values.keys() >= set(names):
                    return SkipReason.CONTENT_INVALID
                return _draft(
                    standing,
                    channel=CHATAPP,
                    sender_id=number_id,
                    type=TEMPLATE,
                    template_id=template_id,
                    template_vars=[decision.values[name] for name in names],
                    priority=_priority(critical=template.category is TemplateCategory.AUTHENTICATION),
                )
            case SmsSend(text, route):
                tracked = standing.execution.step_id in watched_for_clicks(standing.journey.plan)
                form = SmsForm(route=SmsRoute(route), shorten_links=tracked)
                return _draft(
                    standing,
                    channel=SMS,
                    sender_id="",
                    type="text",
                    payload={"text": {"body": text}},
                    details=form.asked,
                    priority=_priority(critical=form.route is SmsRoute.OTP),
                )
            case EmailSend(template_id):
                where = (standing.execution.organization_id, standing.execution.env)
                known = await self._emails.get((*where, template_id))
                if known is None:
                    return _hindered(standing, Hindrance.TEMPLATE_UNAVAILABLE, template_id)
                if not decision.values.keys() >= known.parts.used:
                    return SkipReason.CONTENT_INVALID
                return _draft(
                    standing,
                    channel=EMAIL,
                    sender_id="",
                    type=TEMPLATE,
                    template_id=template_id,
                    content=QueuedEmailContent(decision.values),
                    priority=_priority(critical=False),
                )
            case RcsSend(text, route, fallback, card):
                by = RcsRoute(route)
                said = {"text": {"body": text}, "card": card, "fallback": fallback and {"text": fallback}}
                return _draft(
                    standing,
                    channel=RCS,
                    sender_id="",
                    type="text",
                    payload={name: value for name, value in said.items() if value is not None},
                    details=RcsForm(route=by).asked,
                    priority=_priority(critical=by is RcsRoute.OTP),
                )


def watched_for_clicks(plan: RunnableJourney) -> set[str]:
    """The sends whose links have to be tracked: a condition asks whether anybody opened one."""
    return {
        step.about
        for step in plan.steps.values()
        if isinstance(step, SignalCondition) and step.signal is StepSignal.CLICOU
    }


def _hindered(standing: Standing, hindrance: Hindrance, about: str) -> Hindered:
    return Hindered(hindrance, standing.execution.step_id, about)


def _priority(*, critical: bool) -> Priority:
    return Priority.CRITICAL if critical else Priority.NORMAL


def _draft(standing: Standing, **content: Any) -> MessageDraft:
    execution, contact = standing.execution, standing.contact
    assert isinstance(contact, Contact)  # noqa: S101 - nothing is sent to a contact that is gone; a send reads it
    metadata: Mapping[str, Any] = {
        "journeyId": execution.journey_id,
        "journeyStepId": execution.step_id,
        "journeyRunId": execution.id,
    }
    return MessageDraft(
        organization_id=execution.organization_id,
        env=execution.env,
        to=(contact.email or "") if content["channel"] == EMAIL else contact.phone,
        contact_id=contact.id,
        metadata=metadata,
        **content,
    )


def _skipped(refusal: Problem) -> SkipReason:
    if refusal.code == "RECIPIENT_SUPPRESSED":
        return SkipReason.EMAIL_SUPPRESSED
    fields = [error.path for error in refusal.errors]
    return next((_BY_FIELD[path] for path in fields if path in _BY_FIELD), SkipReason.CONTENT_INVALID)
