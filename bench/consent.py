"""What consent costs on the way out: marketing messages to a million contacts, beside others to the same, in turns."""

from bench.contacts import make_contacts
from bench.end_to_end import NO_RECEIPTS, NO_WALLET, SENDERS, sustained
from bench.harness import Figure, Say, against, running, scratch
from bench.recado_process import READY, Api, recado, write_bodies
from bench.rows import LIMIT

CONTACTS = 1_000_000
ROUNDS = 2
LEAST = 0.9
# Exactly those whom the load addresses, and none who refused: a refusal would end a request.
_ADDRESSED = """
update contacts
set phone = '+55119' || lpad((right(phone, 8)::int - 1)::text, 6, '0') || $1, opt_in_status = 'granted'
"""


async def run(say: Say) -> list[Figure]:
    """Both go to the same people over 40 numbers each; only marketing asks for consent, at accept and in the claim."""
    others, marketing = [], []
    async with scratch() as folder, running(recado(folder, **NO_WALLET), READY) as service, Api(service) as api:
        say(f"consent: making {CONTACTS:,} contacts")
        database = await service.database()
        await make_contacts(database, api.organization_id, CONTACTS)
        await database.execute(_ADDRESSED, NO_RECEIPTS, timeout=LIMIT)
        await database.execute("vacuum (full, analyze) contacts", timeout=LIMIT)
        await database.close()
        plain = write_bodies(folder / "plain", await api.senders(SENDERS))
        asking = write_bodies(folder / "asking", await api.senders(SENDERS, "m", category="marketing"))
        for number in range(ROUNDS):
            say(f"consent, round {number + 1} of {ROUNDS}: others")
            others.append((await sustained(service, api.token, plain))[1])
            say(f"consent, round {number + 1} of {ROUNDS}: marketing")
            marketing.append((await sustained(service, api.token, asking))[1])
    return [against("sent to a million contacts: marketing beside others", marketing, others, "/s", LEAST)]
