"""Kills while a push leaves: no device is notified twice, none is lost, and coins agree (C22.3, C32)."""

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from tests.crash.push import COINS, Firebase, Moment, PushRound, violations

from recado.actors.push.push_lane import AT_ONCE

pytestmark = pytest.mark.alone

DEVICES = 2_500  # some hundred are in flight at each kill
ROUNDS = int(os.environ.get("CRASH_ROUNDS", "1"))
FIRST_SEED = int(os.environ.get("CRASH_SEED", "10"))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS))
async def test_wherever_the_service_dies_a_device_is_notified_once_and_none_is_lost(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    moments = [*Moment, draw.choice(list(Moment))]
    draw.shuffle(moments)
    async with Firebase().listening() as firebase:
        done = PushRound(tmp_path, firebase, seed=seed, count=DEVICES)
        await done.run(moments)
        try:
            statuses = Counter(row["status"] for row in done.rows)
            print(f"{dict(statuses)}; kills: {done.kills}")
            assert violations(done) == []
            assert [kill.moment for kill in done.kills] == moments
            assert len(done.rows) == done.message["metrics"]["reach"] == DEVICES
            delivered, in_doubt = statuses["delivered"], statuses["queued"]
            assert 0 < in_doubt <= AT_ONCE * len(done.kills)
            assert done.wallet == (COINS - done.price * delivered, done.price * in_doubt)
            assert await done.charged() == done.price * delivered
            called = list(firebase.called)

            await done.a_day_later()
            assert violations(done) == []
            metrics = done.message["metrics"]
            assert (metrics["delivered"], metrics["failed"]) == (delivered, in_doubt)
            assert metrics["delivered"] + metrics["failed"] + metrics["unregistered"] == DEVICES
            assert done.wallet == (COINS - done.price * delivered, 0)
            assert firebase.called == called
            assert not [token for token in done.tokens if token in done.log]
        finally:
            await done.wipe()
