"""Ends an execution because a caller says so, and withdraws what it has queued (C9.12)."""

from collections.abc import Callable, Sequence
from typing import Final

from recado.domain.core.clock import Clock
from recado.domain.core.errors import conflict
from recado.domain.journeys.execution import EndReason, ExecutionStatus
from recado.domain.messages.withdrawal import Withdrawal
from recado.services.journeys.execution_turns import withdraw
from recado.storage.core.audit import AuditEntry, append
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import Effects
from recado.storage.journeys import executions
from recado.storage.journeys.executions import Execution, ExecutionKey

_DETAIL: Final = "The execution is over: only one that is `ativa` can be canceled."


class ExecutionCancellation:
    """Waits for the turn that has the execution in hand. `effects`: of the messages that are withdrawn.

    `recalled` is told, after the commit, of those that a call has in hand, and that must not leave later.
    """

    def __init__(
        self, db: Database, *, clock: Clock, effects: Effects, recalled: Callable[[Sequence[Withdrawal]], None]
    ) -> None:
        self._db = db
        self._clock = clock
        self._effects = effects
        self._recalled = recalled

    async def cancel(self, key: ExecutionKey, entry: AuditEntry) -> Execution | None:
        """The execution as it is then; None when there is none. `entry`: of the audit.

        Raises `Problem` 409 for one that is over.
        """
        now = self._clock.now()
        async with self._db.hot.transaction() as connection:
            execution = await executions.lock(connection, key)
            if execution is None:
                return None
            if execution.status is not ExecutionStatus.ATIVA:
                raise conflict("INVALID_STATE", _DETAIL, status=execution.status.value)
            ended = execution.ended(EndReason.CANCELED_BY_CALLER, now)
            moved, in_hand = await withdraw(connection, execution.organization_id, execution.env, [execution.id], now)
            committed = await self._effects.write(connection, moved)
            await append(connection, entry)
            await executions.save(connection, [ended], [])
        committed()
        if in_hand:
            self._recalled(in_hand)
        return ended
