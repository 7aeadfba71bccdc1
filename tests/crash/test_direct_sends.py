"""Kills amid direct sends of e-mail: none leaves twice, and what is in doubt says so and is settled (C6.2, C10.2)."""

import os
import random
from pathlib import Path

import pytest
from tests.crash.direct_sends import DirectRound, Fate, Moment, violations

pytestmark = pytest.mark.alone

PRICE = 30
COINS = 1_000 + 1_000_000
EMAILS = 240
ROUNDS = int(os.environ.get("CRASH_ROUNDS", "1"))
FIRST_SEED = int(os.environ.get("CRASH_SEED", "10"))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS))
async def test_wherever_the_service_dies_an_email_leaves_once_and_a_doubt_is_told(seed: int, tmp_path: Path) -> None:
    moments = list(Moment)
    random.Random(seed).shuffle(moments)
    done = DirectRound(tmp_path, seed=seed, count=EMAILS)
    await done.run(moments)
    try:
        assert violations(done) == []
        assert [kill.moment for kill in done.kills] == moments
        assert sum(letter.tries > 1 for letter in done.letters) > 10
        statuses = [each["status"] for each in done.messages.values()]
        sent, queued = statuses.count("sent"), statuses.count("queued")
        print(f"{len(statuses)} rows: {sent} sent, {queued} in doubt, {statuses.count('failed')} failed")
        assert queued >= 3  # at each of the kills that met an answer on its way, and at more
        assert done.wallet == (COINS - PRICE * sent, PRICE * queued)

        in_doubt = {each["id"]: each for each in done.messages.values() if each["status"] == "queued"}
        for message_id in in_doubt:
            assert (await done.waiting_of(message_id))["reason"] == "uncertain"
        taken = done.taken
        for letter in done.letters:
            if any(each["to"] == letter.to for each in in_doubt.values()):
                again = await done.repeat(letter)
                assert (again["id"] in in_doubt, again["status"], again["replayed"]) == (True, "queued", True)
        assert done.taken == taken

        await done.a_day_later()
        for message_id in in_doubt:
            settled = done.messages[message_id]
            assert (settled["status"], settled["reason"]) == ("failed", "provider_error")
        assert done.wallet == (COINS - PRICE * sent, 0)
        assert done.taken == taken
        assert not [letter.to for letter in done.letters if letter.to in done.log]
    finally:
        await done.wipe()
    assert {letter.fate for letter in done.letters} == set(Fate)
