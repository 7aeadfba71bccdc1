"""Kills under load: nothing is lost, nothing leaves twice, every event is told, and what is in doubt says so (C32).

`CRASH_ROUNDS`: how many rounds the long run makes; `CRASH_SEED`: the first one's seed. Every third speaks to the hosted
API, the others to a bridge; as many more send SMS over SMPP.
"""

import os
from pathlib import Path

import pytest
from tests.crash.crashes import Crash, CrashRound, drawn
from tests.crash.round import Outcome, report
from tests.privacy import found_in_logs

pytestmark = pytest.mark.alone

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "4"))
FIRST_SEED = int(os.environ.get("CRASH_SEED", "10"))


@pytest.mark.long
async def test_a_short_round_loses_nothing_doubles_nothing_and_tells_no_secret(tmp_path: Path) -> None:
    outcome = await CrashRound(tmp_path, seed=1, short=True).run([Crash.SERVICE, Crash.POSTGRES, Crash.PROVIDER])

    check(outcome)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS))
async def test_whatever_dies_in_whatever_order_nothing_is_lost_or_doubled(seed: int, tmp_path: Path) -> None:
    protocol = "bridge" if seed % 3 else "cloud"

    outcome = await CrashRound(tmp_path, seed=seed, protocol=protocol).run(drawn(seed))

    check(outcome)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS))
async def test_whatever_dies_sms_over_smpp_leave_once_with_all_their_parts(seed: int, tmp_path: Path) -> None:
    outcome = await CrashRound(tmp_path, seed=seed, protocol="smpp").run(drawn(seed))

    check(outcome)
    assert any(request.parts > 1 for request in outcome.evidence.requests)


def check(outcome: Outcome) -> None:
    evidence = outcome.evidence
    repeated = sum(letter.tries > 1 for letter in evidence.letters)
    claimed = [len(kill.claimed) for kill in evidence.kills]
    print(*outcome.story, sep="\n")
    print(f"{len(evidence.messages)} messages, {repeated} repeated requests, claimed at the kills: {claimed}")
    print(f"{len(evidence.rows.events)} events in {len(evidence.arrivals)} deliveries")
    wrong = report(outcome)
    assert not wrong, "\n".join(wrong)
    assert len(evidence.messages) >= 500
    assert any(mailing.ids for mailing in evidence.mailings)
    assert repeated > 10
    told = [(letter.recipient, letter.marker) for letter in evidence.letters]
    told += [each for mailing in evidence.mailings for each in mailing.recipients.items()]
    personal = [text for to, marker in told for text in (to[1:], marker.split()[0])]
    personal += [letter.key for letter in evidence.letters]
    assert found_in_logs(outcome.logs, [*outcome.secrets, *personal]) == []
