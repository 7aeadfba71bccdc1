"""People opt out while a batch of marketing messages leaves: nothing leaves for them after the answer (C12.5.3)."""

import asyncio
from datetime import UTC, datetime

from tests.acceptance.sandbox.customer import Customer, moment, phone
from tests.acceptance.sandbox.test_batches import becomes, bulk
from tests.program import Api

from recado.domain.core.moments import TOLERANCE

PER_SECOND = 100
PEOPLE = 300


async def test_nobody_is_sent_to_after_the_answer_to_their_opt_out(api: Api) -> None:
    customer = await Customer.arrive(api, per_second=PER_SECOND, category="marketing")
    people = [phone() for _ in range(PEOPLE)]
    await customer.pause()
    batch = await bulk(customer, [{"to": each} for each in people])
    answered: dict[str, datetime] = {}

    async def opt_out(who: str) -> None:
        await api.call("POST", "/contacts/opt-out", {"phone": who})
        answered[who] = datetime.now(UTC)

    await opt_out(people[0])  # in time in any case
    await customer.resume()
    started = datetime.now(UTC)
    while len(answered) < PEOPLE // 3:
        # Around those whose turn it is now: some have left, some are claimed, some wait.
        turn = int((datetime.now(UTC) - started).total_seconds() * PER_SECOND)
        near = [who for who in people[max(0, turn - 4) : turn + 12] if who not in answered] or [
            who for who in people if who not in answered
        ]
        await asyncio.gather(*map(opt_out, near[:3]))

    await becomes(customer, batch, {"status": "completed"})
    found = (await api.call("GET", f"/messages?batchId={batch['id']}&limit=200"))["items"]
    found += (await api.call("GET", f"/messages?batchId={batch['id']}&limit=200&skip=200"))["items"]
    assert len(found) == PEOPLE
    sent = {message["to"]: moment(message["sentAt"]) for message in found if "sentAt" in message}
    # `sentAt` follows the machine's clock within the tolerance of the pace; `test_opt_out_race.py` compares no clocks.
    late = [sent[who] - at for who, at in answered.items() if who in sent and sent[who] - at > TOLERANCE]
    assert [f"sent {by.total_seconds() * 1_000:.1f} ms after the answer" for by in late] == []
    failed = [message for message in found if message["status"] == "failed"]
    assert people[0] in {message["to"] for message in failed}
    assert {message["lastError"] for message in failed} == {"opted_out: the contact opted out"}
    assert {message["to"] for message in failed} <= set(answered)
