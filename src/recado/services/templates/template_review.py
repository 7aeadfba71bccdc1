"""A template on its way through review: the submission to the provider, its retries, and the verdict (C11.3).

A template's row says when its next step is due; anyone who takes it sets a later turn first, so that a crash only
delays it. The sandbox's verdict waits in the row as well.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from recado.channels.core.adapters import ReviewerFor
from recado.channels.core.errors import ProviderError
from recado.channels.core.event_json import event_from_json, event_to_json
from recado.channels.core.events import TemplateVerdict as TemplateReport
from recado.channels.core.provider import Submission, TemplateSubmission
from recado.domain.core.clock import Clock
from recado.domain.core.ids import IdSource
from recado.domain.messages.changes import OnChange, TemplateChanged
from recado.domain.templates.template import (
    TEMPLATE_MACHINE,
    TemplateCategory,
    TemplateEvent,
    TemplateStatus,
    reported_events,
)
from recado.services.effects.record_events import announce, template_moved
from recado.services.senders.accounts import account_of
from recado.services.templates.template_flows import as_there
from recado.services.templates.template_there import there_already
from recado.storage.core.connections.changing import changing
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.senders import numbers
from recado.storage.templates import templates
from recado.storage.templates.templates import Template

# Waits before the submission is tried again while the provider is away; after the last one it is given up.
SUBMIT_AGAIN = (
    timedelta(minutes=1),
    timedelta(minutes=3),
    timedelta(minutes=10),
    timedelta(minutes=30),
    timedelta(hours=1),
)
LEASE = timedelta(seconds=60)
BLOCK = 100
AT_ONCE = 20
LONGEST_REASON = 512
_REVIEWED = frozenset({"approved", "rejected"})

_log = structlog.get_logger(__name__)


class TemplateReview:
    """Takes due steps. `run` is one pass over what is due in one environment, to be called every second."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        ids: IdSource,
        keys: KeyRing,
        provider_for: ReviewerFor,
        changed: OnChange,
    ) -> None:
        self._database = database
        self._clock = clock
        self._ids = ids
        self._keys = keys
        self._provider_for = provider_for
        self._changed = changed

    async def run(self, env: str) -> None:
        """Take every step that is due, a few at once."""
        while due := await templates.claim_due(self._database, env, self._clock.now(), lease=LEASE, limit=BLOCK):
            turns = asyncio.Semaphore(AT_ONCE)
            results = await asyncio.gather(*(self._turn(turns, template) for template in due), return_exceptions=True)
            for failure in results:
                if isinstance(failure, BaseException):
                    _log.error("template_step_failed", error=type(failure).__name__)
            if len(due) < BLOCK:
                return

    async def report(self, env: str, news: TemplateReport) -> None:
        """Store what a provider reports by itself; news of a template that is not here is dropped."""
        if news.business_account is not None:
            shared = await templates.of_business_account(
                self._database, env, news.provider_template_id, news.business_account
            )
            for template in shared or await self._submitted(env, news, None):
                await self._store(template, lambda at, now: with_news(at, news, now))
            return
        number_id = None
        if news.account is not None:
            number = await numbers.by_provider_id(self._database, env, news.account)
            if number is None:
                return
            number_id = number.id
        known = await templates.by_provider_id(self._database, env, news.provider_template_id, number_id)
        for template in await self._submitted(env, news, number_id) if known is None else [known]:
            await self._store(template, lambda at, now: with_news(at, news, now))

    async def _submitted(self, env: str, news: TemplateReport, number_id: str | None) -> list[Template]:
        """Those that a verdict may be about which came before the answer to their submission: found by their name."""
        if news.name is None or news.language is None or news.status not in _REVIEWED:
            return []
        return await templates.submitted(
            self._database,
            env,
            news.name,
            news.language,
            business_account_id=news.business_account,
            number_id=number_id,
        )

    async def _turn(self, turns: asyncio.Semaphore, template: Template) -> None:
        async with turns:
            if template.status is TemplateStatus.SUBMITTED:
                await self._submit(template)
            elif template.verdict is not None:
                verdict = event_from_json(template.verdict)
                if isinstance(verdict, TemplateReport):
                    await self._store(template, lambda at, now: with_report(without_step(at), verdict))
            else:
                await self._store(template, lambda at, now: without_step(at))

    async def _submit(self, template: Template) -> None:
        provider = self._provider_for(template.env)
        number = await numbers.get(self._database, template.organization_id, template.env, template.number_id)
        if provider is None or number is None:
            await self._store(template, with_provider_away)
            return
        components, faults = await as_there(self._database, template)
        if faults:  # a flow is no longer active
            await self._store(template, lambda at, now: with_refusal(at, faults[0].message))
            return
        submission = TemplateSubmission(
            id=template.id,
            name=template.name,
            language=template.language,
            category=template.category,
            components=components,
            header_example_url=template.header_example_url,
            provider_template_id=template.provider_template_id,
        )
        account = account_of(number, self._keys)
        try:
            taken = await provider.submit_template(account, submission)
        except ProviderError as error:
            if error.kind != "refused":
                await self._store(template, with_provider_away)
                return
            found = await there_already(provider, account, submission, self._clock.now())
            if found is None:
                reason = f"{error.code}: {error.text}"
                await self._store(template, lambda at, now: with_refusal(at, reason))
                return
            taken = found
        await self._store(template, lambda at, now: with_submission(at, taken, now))

    async def _store(self, template: Template, change: Callable[[Template, datetime], Template]) -> None:
        now = self._clock.now()
        async with changing(self._database, self._changed, change_of(template)) as connection:
            before = await templates.get_locked(connection, template.organization_id, template.env, template.id)
            if before is None:  # deleted meanwhile
                return
            after = await templates.save(connection, before, change(before, now), now)
            queued = await template_moved(connection, self._ids, before, after)
        if after.revision != before.revision:
            self._changed(change_of(after))
            announce(self._changed, queued)


def change_of(template: Template) -> TemplateChanged:
    """What to tell those who hold a copy of the template."""
    return TemplateChanged(template.organization_id, template.env, template.number_id, template.id)


def without_step(template: Template) -> Template:
    """The template with nothing more to come by itself."""
    return replace(template, next_step_at=None, verdict=None, submit_attempts=0)


def submitted(template: Template, now: datetime) -> Template:
    """The template handed in for review; raises `IllegalMove` unless it is a draft or rejected."""
    status = TEMPLATE_MACHINE.move(template.status, TemplateEvent.SUBMIT)
    return replace(without_step(template), status=status, rejection_reason=None, next_step_at=now)


def with_submission(template: Template, taken: Submission, now: datetime) -> Template:
    """The provider took it for review. A template that moved on meanwhile keeps its state."""
    named = replace(template, provider_template_id=taken.provider_template_id)
    if template.status is not TemplateStatus.SUBMITTED:
        return named
    pending = replace(without_step(named), status=TEMPLATE_MACHINE.move(template.status, TemplateEvent.TAKEN))
    if not taken.followups:
        return pending
    verdict = taken.followups[0]
    due = now + timedelta(seconds=verdict.after_seconds)
    return replace(pending, next_step_at=due, verdict=event_to_json(verdict.event))


def with_refusal(template: Template, reason: str) -> Template:
    """The provider refused the submission itself."""
    if template.status is not TemplateStatus.SUBMITTED:
        return template
    status = TEMPLATE_MACHINE.move(template.status, TemplateEvent.REFUSED)
    return replace(without_step(template), status=status, rejection_reason=reason[:LONGEST_REASON])


def with_provider_away(template: Template, now: datetime) -> Template:
    """The provider did not answer: tried again 5 times, then a draft again."""
    if template.status is not TemplateStatus.SUBMITTED:
        return template
    attempts = template.submit_attempts
    if attempts < len(SUBMIT_AGAIN):
        status = TEMPLATE_MACHINE.move(template.status, TemplateEvent.UNREACHABLE)
        again = now + SUBMIT_AGAIN[attempts]
        return replace(template, status=status, submit_attempts=attempts + 1, next_step_at=again)
    status = TEMPLATE_MACHINE.move(template.status, TemplateEvent.GIVEN_UP)
    return replace(without_step(template), status=status, rejection_reason="provider_unreachable")


def with_news(template: Template, news: TemplateReport, now: datetime) -> Template:
    """The template after a report from the provider; one that is older than the latest changes nothing.

    Callbacks come in any order: a pause that comes after its end would hold a template up that is sendable.
    """
    if news.status is None:
        return with_report(template, news)
    if template.reported_at is not None and news.at < template.reported_at:
        return template
    return replace(with_report(template, news), reported_at=min(news.at, now))  # no clock ahead of ours closes the door


def with_report(template: Template, news: TemplateReport) -> Template:
    """The template after a provider's report; a report that its state does not know changes nothing."""
    status = template.status
    if status is TemplateStatus.SUBMITTED and template.provider_template_id is None:
        template = replace(template, provider_template_id=news.provider_template_id)
    if news.status is not None:
        for event in reported_events(status, TemplateStatus(news.status)):
            status = TEMPLATE_MACHINE.move(status, event)
    moved = template if status is template.status else replace(without_step(template), status=status)
    if news.category is not None and moved.status is TemplateStatus.APPROVED:
        moved = replace(moved, category=TemplateCategory(news.category))
    if moved.status is template.status:
        return moved
    if moved.status is TemplateStatus.APPROVED:
        return replace(moved, approved_version=moved.version, rejection_reason=None)
    if moved.status is TemplateStatus.REJECTED:
        return replace(moved, rejection_reason=(news.reason or "rejected by the provider")[:LONGEST_REASON])
    return moved
