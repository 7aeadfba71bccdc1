"""What must be true after the crashes, judged on the provider's own record and on what the service says. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from tests.crash.evidence import CALLED_BEFORE, PUT_OFF, Evidence, by_message, is_uncertain, is_withdrawn
from tests.crash.traffic import said
from tests.crash.verdict_batches import batch_violations
from tests.crash.verdict_events import event_violations
from tests.crash.verdict_parts import part_violations
from tests.crash.verdict_wallet import wallet_violations

from recado.domain.channels import sms
from recado.simulator.behaviour import REFUSALS, Given
from recado.simulator.record import Request

SECOND = timedelta(seconds=1)
# What a kill may leave in doubt (C32): calls in flight. Those that never arrived are as many as the paces come to in
# the times below; of what the provider's death cuts off, a claim ahead of its departure may be one.
CLAIM_AHEAD = 0.05  # seconds: rows are claimed that much before their departure, by design
ON_THE_WIRE = 0.1  # seconds in which a call that has begun reaches the provider's record
# An answer that came is settled in the next commit: 60 ms at most in those rounds. The rest is for a loaded machine
# whose disk is busy with the recovery of PostgreSQL.
SETTLED_WITHIN = timedelta(seconds=2)
DEFINITE = {*REFUSALS, *sms.REFUSALS, sms.SmsReason.EXPIRED}
STAMPS = {"sent": ("sentAt",), "delivered": ("sentAt", "deliveredAt"), "read": ("sentAt", "deliveredAt", "readAt")}
# `sentAt` is when the token was taken (C14.5), so that a request arrives after it: 0.4 to 50 ms. The service follows
# the wall clock to 20 ms, so the order of the two may be wrong by that much; more than 5 s is another departure.
ARRIVES = (timedelta(milliseconds=-20), timedelta(seconds=5))
# Departures that no sentAt tells are judged by the provider's stamps, late by those 50 ms, more on a loaded machine.
STAMPED_LATE = timedelta(milliseconds=250)


def violations(evidence: Evidence) -> list[str]:
    """Everything that is wrong, one line each."""
    return [
        *_lost(evidence),
        *_twice(evidence),
        *wrong_ends(evidence),
        *_too_many_uncertain(evidence),
        *_too_fast(evidence),
        *event_violations(evidence),
        *wallet_violations(evidence),
        *batch_violations(evidence),
        *part_violations(evidence),
    ]


# The rules ----------------------------------------------------------------------------------------------------------


def _lost(evidence: Evidence) -> Iterable[str]:
    """Every message that was answered with 201 exists, and is the one that was meant."""
    yield from (f"{mail.key} was never answered" for mail in (*evidence.letters, *evidence.mailings) if not mail.ids)
    for letter in evidence.letters:
        for message_id in letter.ids:
            message = evidence.messages.get(message_id)
            if message is None:
                yield f"{message_id} was accepted and is gone"
            elif (message["to"], said(message)) != (letter.recipient, letter.marker):
                yield f"{message_id} is not the message that was accepted under its key"


def _twice(evidence: Evidence) -> Iterable[str]:
    """No message left twice; neither did two messages for what the client meant as one."""
    processed = [request for request in evidence.requests if request.outcome.processed]
    for what, name in (("message", lambda it: it.id), ("recipient", lambda it: it.recipient)):
        seen: dict[str, int] = defaultdict(int)
        for request in processed:
            seen[name(request)] += 1
        yield from (f"the {what} {key} was sent {count} times" for key, count in seen.items() if count > 1)
    known = {message_id for letter in evidence.letters for message_id in letter.ids}
    known |= {message_id for message_id, message in evidence.messages.items() if message.get("batchId")}
    known |= _made_for_nobody(evidence)
    # A repeat makes a new message only after a definite refusal of the first (C6.2).
    made = defaultdict(list)
    for message_id, message in evidence.messages.items():
        made[message["to"]].append(message_id)
    for ids in made.values():
        for message_id in sorted(ids)[:-1]:
            if evidence.messages[message_id]["status"] != "failed":
                yield f"{message_id} was accepted once more under the same key, and was not refused"
    yield from (f"{message_id} left, and no answer named it" for message_id in {r.id for r in processed} - known)
    for request in processed:
        if request.protocol == "bridge" and request.id != request.idempotency_key:
            yield f"{request.id} was sent under the key {request.idempotency_key}"


def _made_for_nobody(evidence: Evidence) -> set[str]:
    """Messages of a repeat for which nobody waited any more when it was read, as by a process that had stood still.

    The message that its answer would have named before was refused by then (C6.2).
    """
    letters = {
        letter.recipient
        for letter in evidence.letters
        if letter.tries > len(letter.ids)
        and all(evidence.messages.get(each, {}).get("status") == "failed" for each in letter.ids)
    }
    return {message_id for message_id, message in evidence.messages.items() if message["to"] in letters}


def wrong_ends(evidence: Evidence) -> Iterable[str]:
    """Messages that did not end, or not yet, as the provider's record says."""
    in_doubt = evidence.in_doubt()
    requests = by_message(evidence.requests)
    for message_id, message in evidence.messages.items():
        of_this = requests.get(message_id, ())
        end = "uncertain" if is_uncertain(message) else "archived" if is_withdrawn(message) else message["status"]
        allowed = _allowed_ends(of_this, message_id in in_doubt)
        if evidence.rows.batches.get(message.get("batchId", "")) == "canceled" and not _was_taken(of_this):
            allowed |= {"archived"}
        if end not in allowed:
            history = [(it.outcome.value, it.receipts, f"{it.at:%T.%f}", it.answered_at is not None) for it in of_this]
            why = message.get("waiting") or message.get("lastError")
            yield f"{message_id} is {end} ({why}), not {sorted(allowed)}: {history}"
        if end == "failed" and str(message.get("lastError")).split(":")[0] not in DEFINITE:
            yield f"{message_id} failed without a definite reason: {message.get('lastError')}"
        stamps = STAMPS.get(end, ())
        yield from (f"{message_id} is {end} without {stamp}" for stamp in stamps if not message.get(stamp))


def _was_taken(requests: Sequence[Request]) -> bool:
    """Whether the provider did more than put it off."""
    return bool(requests) and requests[-1].outcome not in PUT_OFF


def _allowed_ends(requests: Sequence[Request], in_doubt: bool) -> set[str]:
    """How a message may end that the provider was asked to send like this. `in_doubt`: under way at a kill."""
    if not _was_taken(requests):
        return {"uncertain"} if in_doubt else set()
    last = requests[-1]
    if last.outcome is Given.REFUSED:
        return {"failed", "uncertain"} if in_doubt else {"failed"}
    # The furthest that was told; SMS are never read.
    told = {next(each for each in ("failed", "read", "delivered") if each in last.receipts)} if last.receipts else set()
    if last.outcome is Given.ACCEPTED and not in_doubt:
        return told or {"sent"}
    if last.referenced and told:
        return told
    # No report names our id: what is not recorded of the answer stays unknown.
    return {"uncertain"} | (told or {"sent"} if last.outcome is Given.ACCEPTED else set())


def _too_many_uncertain(evidence: Evidence) -> Iterable[str]:
    """A kill leaves in doubt the calls in flight, nothing else: what was only claimed goes back."""
    requests = by_message(evidence.requests)
    ahead = sum(max(1.0, sender.per_second * (CLAIM_AHEAD + ON_THE_WIRE)) for sender in evidence.senders)
    for kill in evidence.kills:
        never_received = unanswered = 0
        for message_id, claimed_at in kill.claimed.items():
            # What had left is read by the provider, though a moment later, from the connection of a dead service.
            made = [it for it in requests.get(message_id, ()) if claimed_at <= it.at <= kill.at + SECOND]
            if not made:
                never_received += 1
            elif made[-1].answered_at is None:
                unanswered += 1
            elif _overdue(made[-1].answered_at, kill.at, evidence):
                yield f"{message_id} was answered {kill.at - made[-1].answered_at} before the kill, and not settled"
        if never_received > ahead:
            yield f"{never_received} calls had begun at a kill and did not arrive, above {ahead:.0f}"
        most = _most_at_once(evidence, kill.at, SETTLED_WITHIN)
        if most is not None and never_received + unanswered > most:
            yield f"{never_received + unanswered} calls were under way at a kill, above {most}"
    for died in evidence.provider_kills:
        if (unheard := len(evidence.unheard(died))) > ahead:
            yield f"{unheard} messages are uncertain that the provider never saw, above {ahead:.0f}"
        most = _most_at_once(evidence, died, CALLED_BEFORE)
        if most is not None and (left := len(_left_in_doubt(evidence, requests, died))) > most:
            yield f"{left} messages are uncertain by the provider's death, above {most}"


def _most_at_once(evidence: Evidence, at: datetime, within: timedelta) -> int | None:
    """The calls that may be under way then, or were when the provider died shortly before."""
    deaths = {died for died in evidence.provider_kills if at - within <= died < at}
    return None if evidence.at_once is None else evidence.at_once * (1 + len(deaths))


def _left_in_doubt(evidence: Evidence, requests: Mapping[str, Sequence[Request]], died: datetime) -> set[str]:
    """What is uncertain only because the provider died then."""
    claimed = {message_id for kill in evidence.kills for message_id in kill.claimed}
    return {
        message_id
        for message_id in (evidence.cut(died) | evidence.unheard(died)) - claimed
        if is_uncertain(evidence.messages[message_id])
        and all(each.outcome is Given.ACCEPTED or each.outcome in PUT_OFF for each in requests.get(message_id, ()))
    }


def _overdue(answered: datetime, killed: datetime, evidence: Evidence) -> bool:
    """Whether an answer should have been settled when the service died.

    A settlement waits for the database, and for a process that stands still.
    """
    halts = (*evidence.database_deaths, *evidence.stops)
    waited = any(answered - SETTLED_WITHIN < halt < killed for halt in halts)
    return answered < killed - SETTLED_WITHIN and not waited


def _too_fast(evidence: Evidence) -> Iterable[str]:
    """No sliding second carries more than `perSecond` departures, across restarts too."""
    in_doubt = evidence.in_doubt()
    for sender in evidence.senders:
        exact, all_of_them = [], []
        for request in evidence.requests:
            if request.number != sender.phone_number_id:
                continue
            message = evidence.messages.get(request.id, {})
            known = request.outcome is Given.ACCEPTED and request.id not in in_doubt
            if known and message.get("sentAt"):
                departed = datetime.fromisoformat(message["sentAt"])
                exact.append(departed)
                if not ARRIVES[0] <= request.at - departed <= ARRIVES[1]:
                    yield f"{request.id} left at {departed} and arrived at {request.at}"
            else:
                departed = request.at
            all_of_them.append(departed)
        for times, shortest in ((exact, SECOND), (all_of_them, SECOND - STAMPED_LATE)):
            worst = tightest(times, sender.per_second)
            if worst is not None and worst < shortest:
                yield f"{sender.phone_number_id}: {sender.per_second + 1} departures within {worst}"


def tightest(times: Iterable[datetime], per_second: int) -> timedelta | None:
    """The shortest time in which `per_second` + 1 departures lie; None when there are not as many."""
    ordered = sorted(times)
    return min((late - early for early, late in zip(ordered, ordered[per_second:], strict=False)), default=None)
