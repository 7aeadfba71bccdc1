"""Counts what came of the messages of steps (C9.10), as signals tell of them: each outcome of a message once.

A signal says that something happened, and not what. So what is counted of a message stands in the line of its trail.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from recado.domain.journeys.graph import StepChannel
from recado.domain.journeys.signal_conditions import ANSWERED_ON
from recado.domain.journeys.step_numbers import OUTCOMES, MessageOutcome
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load
from recado.storage.journeys import step_counts
from recado.storage.journeys.execution_counts import JourneyKey

SQL: Final = load("step_outcomes")

ANSWERED_FOR: Final = timedelta(days=30)
"""How long after its execution began an answer to a message is counted."""

_MOST_EXECUTIONS: Final = 20  # of a contact that are looked at, the last ones that began


@dataclass(frozen=True, slots=True)
class _Outcomes:
    """What a message came to, and what of it was counted before."""

    organization_id: str
    env: str
    journey_id: str
    execution_id: str
    step_id: str
    before: MessageOutcome
    now: MessageOutcome

    @property
    def line(self) -> tuple[str, str, str]:
        """Of the trail."""
        return (self.organization_id, self.execution_id, self.step_id)


async def hear(connection: Executor, signals: Sequence[Mapping[str, Any]], now: datetime) -> None:
    """Count what these signals tell of, in the transaction that takes them."""
    found: dict[tuple[str, str, str], _Outcomes] = {}
    messages = {
        (row["organization_id"], row["env"], row["journey_id"], row["message_id"])
        for row in signals
        if row["message_id"] is not None
    }
    if messages:
        for row in await connection.fetch(SQL.of_messages, *columns(sorted(messages), 4)):
            each = _read(row)
            # An answer is no state of the message: it stays counted.
            found[each.line] = replace(each, now=each.now | each.before & MessageOutcome.REPLIED)
    contacts = {
        (row["organization_id"], row["env"], row["contact_id"]) for row in signals if row["contact_id"] is not None
    }
    if contacts:
        answers = [(sent_on, " ".join(channels)) for sent_on, channels in ANSWERED_ON.items()]
        rows = await connection.fetch(
            SQL.of_contacts, *columns(sorted(contacts), 3), now - ANSWERED_FOR, _MOST_EXECUTIONS, *columns(answers, 2),
            StepChannel.CHATAPP.value,
        )  # fmt: skip
        for row in rows:
            each = _read(row)
            told = found.get(each.line, each)
            found[each.line] = replace(told, now=told.now | MessageOutcome.REPLIED)
    await _count(connection, [each for each in found.values() if each.now != each.before])


async def _count(connection: Executor, changed: Sequence[_Outcomes]) -> None:
    if not changed:
        return
    rows = sorted((*each.line, each.before.value, each.now.value) for each in changed)
    noted = {tuple(row) for row in await connection.fetch(SQL.note, *columns(rows, 5))}
    changes: defaultdict[JourneyKey, Counter[tuple[str, str]]] = defaultdict(Counter)
    for each in changed:
        if each.line not in noted:
            continue
        for outcome, name in OUTCOMES.items():
            change = bool(each.now & outcome) - bool(each.before & outcome)
            changes[each.organization_id, each.env, each.journey_id][each.step_id, name] += change
    await step_counts.add(connection, changes)


def _read(row: Mapping[str, Any]) -> _Outcomes:
    return _Outcomes(
        row["organization_id"], row["env"], row["journey_id"], row["execution_id"], row["step_id"],
        MessageOutcome(row["before"]), MessageOutcome(row["now"]),
    )  # fmt: skip
