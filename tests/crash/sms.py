"""SMS in the crash rounds: how they are asked for, and what the SMS centre's record says of each message. Pure.

Nothing in SMPP names our id: a submit is the message's to whose phone it went; each phone is one mail's. A mail that
was refused for good may have been made a second message: a submit is that one's which was the last to be accepted.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from tests.crash.evidence import PUT_OFF
from tests.crash.traffic import Letter, Mail, Mailing, unique

from recado.simulator.behaviour import Given
from recado.simulator.record import Request, recipient_hash

SOURCE = "28282"
PAD, SEGMENT = "abcdefghi ", 153  # septets of a part of several
LENGTHS = (1, 1, 1, 2, 3)  # parts, one message after another


def _marker(seed: int, number: int) -> str:
    """A text of one part, or of several: in GSM-7, or one in ten in UCS-2 and so of more."""
    parts = LENGTHS[number % len(LENGTHS)]
    head = unique(seed, number) + (" \u4e2d" if number % 10 == 1 else "")
    return head if parts == 1 else f"{head} {PAD * 100}"[: SEGMENT * parts - 1] + "."


def _letter(letter: Letter) -> dict[str, Any]:
    more = {"route": "otp"} if letter.priority == "critical" else {"transactional": True}
    return {
        "to": letter.recipient,
        "text": letter.marker,
        "metadata": {"key": letter.key},
        "campaignId": letter.campaign,
        **more,
    }


def _mailing(mailing: Mailing) -> dict[str, Any]:
    return {
        "channel": "sms",
        "text": "{{marker}}",
        "recipients": [{"to": to, "variables": {"marker": marker}} for to, marker in mailing.recipients.items()],
        "campaignId": mailing.campaign,
    }


SMS = Mail(path="/v2/sms/messages", letter=_letter, mailing=_mailing, marker=_marker)


# The record ---------------------------------------------------------------------------------------------------------


def by_owner(
    submits: Iterable[Request], messages: Mapping[str, Mapping[str, Any]]
) -> Mapping[str | None, Sequence[Request]]:
    """The submits of each message, in their order; those that no message can have made under None."""
    made: dict[str, list[tuple[datetime, str]]] = defaultdict(list)
    for message_id, message in messages.items():
        made[recipient_hash(message["to"])].append((datetime.fromisoformat(message["createdAt"]), message_id))
    for each in made.values():
        each.sort()
    found: dict[str | None, list[Request]] = defaultdict(list)
    for submit in submits:
        accepted = made.get(submit.recipient, [])
        place = bisect_right(accepted, submit.at, key=lambda it: it[0])
        found[accepted[place - 1][1] if place else None].append(submit)
    return found


def requests_of(submits: Iterable[Request], messages: Mapping[str, Mapping[str, Any]]) -> list[Request]:
    """The record as if each message had been one request, once for each try, under the message's id."""
    made = []
    for message_id, of_it in by_owner(submits, messages).items():
        # What is nobody's is as many requests as it is, under ids that no message has.
        tries = [[each] for each in of_it] if message_id is None else _tries(of_it)
        made += [_whole(message_id or each[0].id, each) for each in tries]
    return sorted(made, key=lambda it: it.at)


def _tries(submits: Sequence[Request]) -> list[list[Request]]:
    """A message begins anew with its first part when no part of it was taken, nor refused for good."""
    tries: list[list[Request]] = []
    for submit in submits:
        if not tries or (submit.part == 1 and all(each.outcome in PUT_OFF for each in tries[-1])):
            tries.append([])
        tries[-1].append(submit)
    return tries


def _whole(message_id: str, submits: Sequence[Request]) -> Request:
    """What the parts come to (C29.2). The last part alone is reported, and its id is the message's."""
    latest = {each.part: each for each in submits}
    last = latest[max(latest)]
    answers = [each.answered_at for each in latest.values() if each.outcome not in PUT_OFF and each.answered_at]
    return replace(
        last,
        id=message_id,
        at=submits[0].at,
        outcome=_outcome([each.outcome for each in latest.values()], last),
        answered_at=max(answers) if len(answers) == last.parts else None,
    )


def _outcome(ended: Sequence[Given], last: Request) -> Given:
    """Of a message whose parts ended so: one whose last part was taken is named by it, also with another in doubt."""
    if Given.REFUSED in ended:
        return Given.REFUSED
    if all(each in PUT_OFF for each in ended):
        return Given.SLOW_DOWN
    if len(ended) < last.parts or not all(each.processed for each in ended):
        return Given.LOST  # some part has not left
    return last.outcome
