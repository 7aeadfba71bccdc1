"""Claims that nobody will answer for, where sending again does no harm: they go back to the queue (C29.2)."""

from datetime import datetime

from recado.domain.message import MESSAGE_MACHINE, FailureCode, MessageEvent, last_error
from recado.domain.retry import RETRY_DELAYS
from recado.storage.rows import Executor
from recado.storage.sql import load

SQL = load("rescue")

_RETURNABLE = list(MESSAGE_MACHINE.sources(MessageEvent.RETURN_TO_QUEUE))
_LOST = last_error(FailureCode.PROVIDER_ERROR, "the provider's answer was lost")


async def send_again(executor: Executor, env: str, epoch: int, claimed_before: datetime, now: datetime) -> int:
    """sending → queued for what an older epoch, or a call that never came back, left `sending`; answers how many.

    Only for an environment whose chat-app adapter declares itself idempotent. The attempt counts.
    """
    rows = await executor.fetch(SQL.send_again, env, epoch, claimed_before, now, list(RETRY_DELAYS), _LOST, _RETURNABLE)
    return len(rows)
