"""What must be true of batches and campaigns after the crashes: made once, whole, and counted exactly. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from tests.crash.evidence import Evidence
from tests.crash.rows import CHARGE, Counts
from tests.crash.traffic import said

WAITING = ("queued", "sending")


def batch_violations(evidence: Evidence) -> Iterable[str]:
    """Everything that is wrong, one line each."""
    of_batch: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for message in evidence.messages.values():
        if message.get("batchId"):
            of_batch[message["batchId"]].append(message)
    for mailing in evidence.mailings:
        for batch_id in mailing.ids:
            messages = of_batch.pop(batch_id, [])
            status = evidence.rows.batches.get(batch_id)
            canceled = status == "canceled" and "cancel" in mailing.orders
            yield from _unlike(batch_id, mailing.recipients, messages, whole=not canceled)
            waits = any(message["status"] in WAITING for message in messages)
            if status != ("running" if waits else "completed") and not canceled:
                yield f"{batch_id} is {status}, and {'some' if waits else 'none'} of its messages may still be sent"
    yield from (f"no answer named {batch_id}, which has {len(made)} messages" for batch_id, made in of_batch.items())
    yield from _miscounted(evidence)


def _unlike(
    batch_id: str, recipients: Mapping[str, str], messages: Iterable[Mapping[str, Any]], *, whole: bool
) -> Iterable[str]:
    """A batch has one message for each recipient, with what was meant for them; a canceled one may have fewer."""
    made = Counter((message["to"], said(message)) for message in messages)
    wanted = Counter(recipients.items())
    if whole and (missing := wanted - made):
        yield f"{len(missing)} of {len(wanted)} messages of {batch_id} are missing"
    if surplus := made - wanted:
        yield f"{sum(surplus.values())} messages of {batch_id} were not asked for"


def _miscounted(evidence: Evidence) -> Iterable[str]:
    """The totals of batches and campaigns are those of their messages."""
    wallet = evidence.rows.wallet
    held = wallet.held_by_rows if wallet else {}
    ledger = wallet.ledger if wallet else ()
    charged = {entry.message_id: -entry.coins for entry in ledger if entry.kind == CHARGE}
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for message_id, message in evidence.messages.items():
        status = "queued" if message["status"] in WAITING else message["status"]
        coins = {"held_coins": held.get(message_id, 0), "charged_coins": charged.get(message_id, 0)}
        for key in (message.get("batchId"), message.get("campaignId")):
            if key:
                counted[key].update({"accepted": 1, status: 1, **coins})
    for key in counted.keys() | evidence.rows.totals.keys():
        said, true = evidence.rows.totals.get(key, Counts()), Counts(**counted[key])
        if said != true:
            yield f"the totals of {key} say {said}, and are {true}"
