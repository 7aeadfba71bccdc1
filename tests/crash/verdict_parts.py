"""What must be true of the parts of SMS after the crashes: each left once, and none is missing. Pure."""

from collections import Counter
from collections.abc import Iterable

from tests.crash.evidence import Evidence, is_uncertain
from tests.crash.sms import by_owner

from recado.simulator.behaviour import Given


def part_violations(evidence: Evidence) -> Iterable[str]:
    """Everything that is wrong, one line each."""
    if not evidence.submits:
        return
    in_doubt = evidence.in_doubt()
    for message_id, submits in by_owner(evidence.submits, evidence.messages).items():
        if message_id is None:
            yield from (f"the submit {each.id} is no message's" for each in submits)
            continue
        left = Counter(each.part for each in submits if each.outcome.processed)
        yield from (f"part {part} of {message_id} left {count} times" for part, count in left.items() if count > 1)
        wanted = {each.parts for each in submits}
        if len(wanted) > 1:
            yield f"{message_id} was split into {sorted(wanted)} parts"
        missing = set(range(1, max(wanted) + 1)) - left.keys()
        if not missing or not left or any(each.outcome is Given.REFUSED for each in submits):
            continue
        message = evidence.messages[message_id]
        if not is_uncertain(message):
            yield f"{message_id} is {message['status']}, and its parts {sorted(missing)} never left"
        elif message_id not in in_doubt:
            yield f"the parts {sorted(missing)} of {message_id} never left, and nothing had died"
