"""Bringing over the templates that a provider holds: new ones are imported, known ones refreshed (C11.1)."""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from dataclasses import replace
from datetime import datetime

import structlog

from recado.channels.core.adapters import ReviewerFor
from recado.channels.core.errors import ProviderError
from recado.channels.core.provider import ProviderTemplate
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable
from recado.domain.core.ids import TEMPLATE, IdSource
from recado.domain.messages.changes import DeliveriesQueued, OnChange
from recado.domain.templates.template import Language, TemplateCategory, TemplateStatus
from recado.services.effects.record_events import announce, templates_moved
from recado.services.senders.accounts import account_of, required
from recado.services.templates.template_review import change_of, without_step
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.core.crypto import KeyRing
from recado.storage.senders.numbers import Number
from recado.storage.templates import templates
from recado.storage.templates.templates import Template

AT_ONCE = 20  # runs of different numbers
OF_A_STATEMENT = 100  # templates
MOST_WAITING = 1_000

log = structlog.get_logger()

# What the customer has in hand is not overwritten: a draft is being edited, a submitted one is on its way.
_OURS = frozenset({TemplateStatus.DRAFT, TemplateStatus.SUBMITTED, TemplateStatus.DISABLED})
_LANGUAGES = frozenset(Language)
_CATEGORIES = frozenset(TemplateCategory)
_STATUSES = frozenset(TemplateStatus) - {TemplateStatus.DRAFT, TemplateStatus.SUBMITTED}


class TemplateSync:
    """Reads a number's templates at its provider and writes them here, in one transaction.

    A service: `begin` answers at once, and what was begun goes on beside the requests, one run of a number at a time.
    """

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
        self._runs: dict[str, asyncio.Task[None]] = {}  # by number
        self._again: set[str] = set()  # asked for while its run may have read the provider's list already
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def start(self) -> None:
        """Nothing runs until somebody begins it."""

    async def stop(self) -> None:
        """Ends what is under way: anyone who wants it asks once more."""
        runs = list(self._runs.values())
        for run in runs:
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)

    def begin(self, number: Number) -> None:
        """Let a run of the number begin, or follow the one under way. Raises `Unavailable` when too many wait."""
        if number.id in self._runs:
            self._again.add(number.id)
            return
        if len(self._runs) >= MOST_WAITING:
            raise Unavailable("Too many numbers wait for their templates.")
        # The service's own work, which the request does not wait for: nothing of the request's context goes with it.
        self._runs[number.id] = asyncio.get_running_loop().create_task(self._run_begun(number), context=Context())

    async def settled(self) -> None:
        """Until all that was begun has ended."""
        while self._runs:
            await asyncio.wait(list(self._runs.values()))

    async def _run_begun(self, number: Number) -> None:
        try:
            async with self._turns:
                await self._run_once(number)
                while number.id in self._again:
                    await self._run_once(number)
        finally:
            self._again.discard(number.id)
            del self._runs[number.id]

    async def _run_once(self, number: Number) -> None:
        self._again.discard(number.id)
        try:
            changed = await self.run(number)
        except Exception as error:  # noqa: BLE001 - nobody waits for it
            code = error.code if isinstance(error, ProviderError | Problem) else type(error).__name__
            log.warning("template_sync_failed", number=number.id, error=code)
        else:
            log.info("templates_synced", number=number.id, changed=changed)

    async def run(self, number: Number) -> int:
        """Import and refresh now; answers how many templates changed.

        Raises `ProviderError`, and `Problem` DEPENDENCY_FAILED where the environment has no provider. Templates in
        languages or states that are not of this interface are left out, and so are those beyond the number's limit.
        Of two with one name and language the last counts.
        """
        provider = required(self._provider_for(number.env))
        held = await provider.list_templates(account_of(number, self._keys))
        listed = [*{(each.name, each.language): each for each in held if _usable(each)}.values()]
        touched: list[Template] = []
        queued: list[DeliveriesQueued] = []
        try:
            async with self._database.transaction() as connection:
                for start in range(0, len(listed), OF_A_STATEMENT):
                    some = listed[start : start + OF_A_STATEMENT]
                    touched += await self._take(connection, number, some, queued)
        except Unavailable:  # it may be committed all the same
            self._tell(touched)
            raise
        self._tell(touched)
        for deliveries in queued:
            announce(self._changed, deliveries)
        return len(touched)

    def _tell(self, touched: Sequence[Template]) -> None:
        for template in touched:
            self._changed(change_of(template))

    async def _take(
        self,
        connection: Connection,
        number: Number,
        listed: Sequence[ProviderTemplate],
        queued: list[DeliveriesQueued],
    ) -> list[Template]:
        """Write some at once; answers those that a reader sees changed."""
        theirs = {(each.name, each.language): each for each in listed}
        now = self._clock.now()
        known = {
            (each.name, each.language.value): each
            for each in await templates.by_names_locked(
                connection, number.organization_id, number.env, number.id, [*theirs]
            )
        }
        pairs = [(before, refreshed(before, theirs[name])) for name, before in known.items()]
        saved = await templates.save_many(connection, pairs, now)
        before = {each.id: each for each in known.values()}
        queued.append(await templates_moved(connection, self._ids, [(before[each.id], each) for each in saved]))
        new = [self._imported(number, each, now) for name, each in theirs.items() if name not in known]
        inserted = await templates.insert_many(connection, new)
        return [each for each in saved if each.revision != before[each.id].revision] + inserted

    def _imported(self, number: Number, theirs: ProviderTemplate, now: datetime) -> Template:
        status = TemplateStatus(theirs.status)
        return Template(
            organization_id=number.organization_id,
            id=self._ids.new(TEMPLATE),
            env=number.env,
            number_id=number.id,
            name=theirs.name,
            language=Language(theirs.language),
            category=TemplateCategory(theirs.category),
            status=status,
            components=tuple(theirs.components),
            provider_template_id=theirs.provider_template_id,
            approved_version=1 if status is TemplateStatus.APPROVED else None,
            rejection_reason=theirs.rejection_reason,
            updated_at=now,
        )


def refreshed(template: Template, theirs: ProviderTemplate) -> Template:
    """The template as the provider has it; one that the customer has in hand only learns the provider's id."""
    named = replace(template, provider_template_id=theirs.provider_template_id)
    if template.status in _OURS:
        return named
    status = TemplateStatus(theirs.status)
    approved = status is TemplateStatus.APPROVED
    return replace(
        named if status is template.status else without_step(named),
        status=status,
        category=TemplateCategory(theirs.category),
        components=tuple(theirs.components),
        approved_version=template.version if approved else template.approved_version,
        rejection_reason=theirs.rejection_reason if status is TemplateStatus.REJECTED else None,
    )


def _usable(theirs: ProviderTemplate) -> bool:
    return theirs.language in _LANGUAGES and theirs.category in _CATEGORIES and theirs.status in _STATUSES
