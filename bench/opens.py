"""How fast images of e-mails are given, and how many opens are recorded: of many e-mails, and of one.

Beside it the bare application of the clicks, which leads everybody to one address.
"""

import base64
import statistics
import time
from pathlib import Path

from bench.clicks import CONNECTIONS, Clicks, opened, settled
from bench.harness import Figure, Process, Say, running, scratch
from bench.recado_process import READY, Api, recado
from bench.rows import Connection, Rows
from recado.domain.email.public_tokens import EmailKey, PublicTokens

EMAILS = 20_000
LEAST = 5_000  # opens a second that have to be answered and recorded
ROUNDS = 3
_KEY = b"with what the tokens are signed."
_MAILED = "update messages set channel = 'email', campaign_id = 'bench'"
_CAMPAIGN = """
insert into campaigns (organization_id, env, campaign_id, status, channels, first_message_at)
values ($1, 'test', 'bench', 'running', '{email}', now())
"""
_OPENS = "select opens from campaigns"
_FORGET = "update messages set opened_at = null"


async def run(say: Say) -> list[Figure]:
    """In turns."""
    tokens = PublicTokens(_KEY)
    bound: list[float] = []
    each, again, one = Clicks(), Clicks(), Clicks()
    async with (
        scratch() as folder,
        running(Process(folder, "bare", "-m", "bench.redirects", "--port", "{port}"), "/") as bare,
        running(recado(folder, RECADO_INDEX_KEY=base64.b64encode(_KEY).decode()), READY) as service,
        Api(service) as api,
    ):
        database = await service.database()
        sender = await api.sender("opens")
        sent = await Rows(database).sent(sender, EMAILS)
        await database.execute(_MAILED)
        await database.execute(_CAMPAIGN, sender.organization_id)
        await database.execute("vacuum analyze messages")
        images = [f"{tokens.of_open(EmailKey(sender.organization_id, 'test', each))}.gif\n" for each in sent]
        all_images, one_image, code = folder / "images", folder / "image", folder / "code"
        all_images.write_text("".join(images))
        one_image.write_text(images[0])
        code.write_text("00000001\n")
        for number in range(ROUNDS):
            say(f"opens, round {number + 1} of {ROUNDS}")
            bound.append((await opened(bare, code))[0])
            await database.execute(_FORGET)
            await database.execute("vacuum messages")
            await measured(service, database, all_images, each)
            await measured(service, database, all_images, again)
            await measured(service, database, one_image, one)
        await database.close()
    probe = statistics.median(bound)
    return [
        *figures(f"first opens of {EMAILS:,} e-mails", each, probe),
        *figures("– opened again", again, probe),
        *figures("opens of one e-mail", one, probe, least=0),
    ]


def figures(name: str, opens: Clicks, bound: float, least: int = LEAST) -> list[Figure]:
    given, recorded, p99 = (statistics.median(each) for each in (opens.led, opens.recorded, opens.p99))
    target = (f"≥ {least:,} /s", recorded >= least) if least else ()
    return [
        Figure(
            f"{name}, {CONNECTIONS} connections", f"{given:,.0f} /s, p99 {p99:.1f} ms", f"{bound:,.0f} /s",
            given / bound, f"≥ {LEAST:,} /s", given >= LEAST,
        ),
        Figure(
            "– recorded, until the last of them is", f"{recorded:,.0f} /s", f"{given:,.0f} /s", recorded / given,
            *target,
        ),
    ]  # fmt: skip


async def measured(service: Process, database: Connection, images: Path, opens: Clicks) -> None:
    """Another round of these images."""
    before, began = await database.fetchval(_OPENS), time.monotonic()
    given, p99 = await opened(service, images, "/o/")
    counted, at = await settled(database, _OPENS)
    opens.led.append(given)
    opens.p99.append(p99)
    opens.recorded.append((counted - before) / (at - began))
