"""Claims of one row: each is told from every other by its moment (`dispatch.sql`)."""

from typing import TYPE_CHECKING

from recado.actors.row import row_from
from recado.storage.dispatch import CLAIMED, LOST

if TYPE_CHECKING:
    from tests.actors.number.conftest import Line

_ROW = """
select d.*, m.recipient, m.recipient_hash, m.type, m.payload, m.template_vars
from dispatch d join messages m using (organization_id, id)
where id = $1
"""


async def test_of_two_claims_in_one_instant_of_the_clock_one_is_lost(line: "Line") -> None:
    """A refill that was under way during the first may bring the row once more: it must not be sent twice."""
    (message_id,) = await line.queue(1, tell=False)
    row = row_from(await line.db.fetchrow(_ROW, message_id))
    verdicts = []
    for _ in range(2):
        verdicts.append(line.desk.sending.claim(row, with_consent=False))
        await line.traffic.quiet(line.clock)
    await line.goes_on(0.1)  # what they linger
    assert [await each for each in verdicts] == [CLAIMED, LOST]
