"""Takes the pictures of the console that the documentation shows, of a service that it starts with data of the sandbox.

`python -m tests.acceptance.console.screenshots docs/images`, which `make screenshots` runs.
"""

import asyncio
import io
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from typing import Any
from urllib.parse import urlsplit

from PIL import Image
from tests.acceptance.console.conftest import SignIn, console
from tests.acceptance.console.first_start import first_start
from tests.acceptance.console.receiver import receiver
from tests.acceptance.sandbox.customer import Customer, approved_template, phone
from tests.program import Api, Program
from tests.waiting import until

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 400, "height": 800}
TALL = {"width": 1280, "height": 1_330}  # a graph of five ranks fits in
COLORS = 128  # of a picture, which makes it a third as large
PACES = (80, 40, 20, 10)  # messages a second of the numbers that send
RATE, SECONDS = 120, 100  # of the load, which the slower numbers cannot keep up with
LIVE = "/numbers"
CHARTED = "() => performance.now() > 60000"  # the charts show what the page has seen since it was opened

STEPS = [
    {"id": "hello", "tipo": "enviar", "canal": "sms", "texto": "Welcome! Your card is on its way.", "proximo": "there"},
    {
        "id": "there", "tipo": "condicao", "sobre": "hello", "sinal": "entregue", "janelaMinutos": 60,
        "sim": "groups", "nao": "end",
    },
    {"id": "groups", "tipo": "dividir", "ramos": [
        {"nome": "soon", "peso": 1, "proximo": "day"}, {"nome": "late", "peso": 1, "proximo": "week"},
    ]},
    {"id": "day", "tipo": "esperar", "minutos": 1_440, "proximo": "offer"},
    {"id": "week", "tipo": "esperar", "minutos": 10_080, "proximo": "offer"},
    {"id": "offer", "tipo": "enviar", "canal": "sms", "texto": "Ten percent off, this week only.", "proximo": "end"},
    {"id": "end", "tipo": "fim"},
]  # fmt: skip
CONTACTS = 40  # in the journey

MAIL = """<body style="margin: 0; background: #eef2f2">
<div style="max-width: 480px; margin: 24px auto; background: white; padding: 24px; color: #172022">
<h1 style="color: #0b6b5d; font-size: 22px">Your order is ready</h1>
<p>Hello {{name}},</p><p>order <strong>{{order}}</strong> waits for you at the counter, until eight in the evening.</p>
<p style="color: #4d5a5d; font-size: 13px">You get this message because you ordered from us.</p></div></body>"""


@dataclass(frozen=True, slots=True)
class Picture:
    """`waits_for`: a text that the view shows once it is whole."""

    name: str
    place: str
    waits_for: str
    scheme: Any = "light"
    size: Any = field(default_factory=lambda: DESK)


def at_rest(ids: dict[str, str]) -> list[Picture]:
    """Before the load, in which a message's deliveries are lost among those of others."""
    return [
        Picture("message", f"/messages/{ids['message']}", "message.read"),
        Picture("message-narrow", f"/messages/{ids['waiting']}", "paused by an operator", "dark", PHONE),
        Picture("journey", f"/journeys/{ids['journey']}", f"yes · {CONTACTS}", size=TALL),
        Picture("email-template", f"/email/templates/{ids['mail']}", "How it looks", "dark"),
    ]


def under_load() -> list[Picture]:
    return [
        Picture("numbers", LIVE, "Live"),
        Picture("numbers-dark", LIVE, "Live", "dark"),
        Picture("numbers-narrow", LIVE, "Live", "light", PHONE),
    ]


async def make(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as data:
        async with (
            first_start(Path(data)) as started,
            Api(started.service.url, started.token) as api,
            receiver() as hook,
        ):
            numbers = [
                await api.number(f"{pace} a second", per_second=pace, messagingTier="unlimited") for pace in PACES
            ]
            hook.answer = 204
            events = ["message.sent", "message.delivered", "message.read"]
            await api.call("POST", "/webhooks", {"url": hook.url, "events": events})
            ids = await records(api, numbers[0]["id"])
            await approved_template(api, numbers[-1]["id"])
            load = Program(
                Path(data), "loadtest", "loadtest", started.service.url, "--token", started.token,
                *(part for number in numbers for part in ("--number", number["id"])),
                "--rate", str(RATE), "--duration", str(SECONDS), "--settle", "0",
            )  # fmt: skip
            await asyncio.to_thread(take, started.owner, at_rest(ids), folder)
            load.spawn()
            try:
                await asyncio.to_thread(take, started.owner, under_load(), folder)
            finally:
                load.end(SIGKILL)


async def records(api: Api, number_id: str) -> dict[str, str]:
    """In test; answers the ids of what is looked at."""
    customer = Customer(api, number_id, await approved_template(api, number_id))
    message = await customer.send(phone(), campaignId="spring", metadata={"order": "A-1"})
    await customer.reaches(message, "read")
    first = (await api.call("GET", "/numbers"))["items"][-1]["id"]
    paused = Customer(api, first, await approved_template(api, first))
    await api.call("POST", f"/v2/ops/numbers/{first}/pause")
    waiting = [await paused.send(phone()) for _ in range(3)][-1]
    await paused.waits(waiting, "operator_paused")
    body = {
        "name": "Welcome",
        "descricao": "Of new cards",
        "gatilho": {"tipo": "api"},
        "inicio": "hello",
        "passos": STEPS,
    }
    journey = (await api.call("POST", "/v2/journeys", body))["id"]
    await api.call("POST", f"/v2/journeys/{journey}/activate")
    for _ in range(CONTACTS):
        contact = (await api.call("POST", "/contacts", {"phone": phone()}))["id"]
        await api.call("PATCH", f"/contacts/{contact}", {"optIn": {"status": "granted", "source": "form"}})
        await api.call("POST", f"/v2/journeys/{journey}/entries", {"contato": {"contactId": contact}})

    async def wait() -> bool:
        steps = (await api.call("GET", f"/v2/journeys/{journey}/steps"))["items"]
        return sum(each["aguardando"] for each in steps if each["passo"] in ("day", "week")) == CONTACTS

    await until(wait, "all contacts wait in the journey")
    mail = {
        "name": "Order ready", "subject": "Order {{order}} is ready", "html": MAIL,
        "text": "Hello {{name}}, order {{order}} is ready.",
        "variables": [{"name": "name", "example": "Ana"}, {"name": "order", "example": "A-1042"}],
    }  # fmt: skip
    mail_id = (await api.call("POST", "/v2/email/templates", mail))["id"]
    return {"message": message["id"], "waiting": waiting["id"], "journey": journey, "mail": mail_id}


def take(owner: SignIn, pictures: Sequence[Picture], folder: Path) -> None:
    """All of them in one visit; what stays at its place is not opened anew."""
    folder.mkdir(parents=True, exist_ok=True)
    with console(owner) as visit:
        for picture in pictures:
            visit.page.emulate_media(color_scheme=picture.scheme)
            visit.page.set_viewport_size(picture.size)
            if urlsplit(visit.page.url).fragment != picture.place:
                visit.at(picture.place)
            visit.page.get_by_text(picture.waits_for).first.wait_for(state="attached")
            if picture.place == LIVE:
                visit.page.wait_for_function(CHARTED, timeout=90_000)
            image = Image.open(io.BytesIO(visit.page.screenshot()))
            image.quantize(COLORS, dither=Image.Dither.NONE).save(folder / f"{picture.name}.png", optimize=True)
        assert visit.complaints == []


if __name__ == "__main__":
    asyncio.run(make(Path(sys.argv[1])))
