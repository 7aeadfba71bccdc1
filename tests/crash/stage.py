"""Everything that runs in a round, each in a process of its own: the service, the provider, and a webhook endpoint."""

import asyncio
import secrets
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from tests.crash.endpoint import Arrival, read_arrivals
from tests.crash.sms import SOURCE, requests_of
from tests.crash.traffic import CHAT_APP, Mail, Sender
from tests.crash.transports import TRANSPORTS, Place, Protocol
from tests.program import Api, Program, Service, free_port
from tests.waiting import until

from recado.simulator.record import Request, notes, read_record
from recado.simulator.smpp_centre import UNBIND

PACES = (30, 60, 90, 120)  # messages a second, one number each
CODES = {131056: 0.003, 131000: 0.005}  # "not to this person now", "a passing fault": both are sent again
EVENTS = (
    *("message.sent", "message.delivered", "message.read", "message.failed"),
    *("sms.delivered", "sms.undelivered", "sms.failed"),
)
COINS = 1_000_000_000
BACKOFF = 1  # seconds until a delivery that was refused is tried again for the first time


class EndpointProgram(Program):
    """`tests/crash/endpoint.py`."""

    starts_with: ClassVar[Sequence[str]] = (sys.executable, str(Path(__file__).with_name("endpoint.py")))


class Stage:
    """The service, its provider at the port `provider`, and the endpoint. `folder`: where everything is kept.

    `settings`: of the service, beside those that every round needs. `mail`: how it is asked to send; `at_once`: calls
    that may be under way, None where only the paces say.
    """

    mail: Mail = CHAT_APP
    at_once: int | None = None

    def __init__(self, folder: Path, *, seed: int, **settings: str) -> None:
        self.secrets: list[str] = []  # what must not stand in any log
        self._arrived = folder / "arrived.jsonl"
        endpoint = free_port()
        self._endpoint_url = f"http://127.0.0.1:{endpoint}/hook"
        self._webhook_secret = ""
        self.service = Service(folder, durable=True, LOG_LEVEL="debug", SSRF_ALLOW_CIDRS="127.0.0.0/8", **settings)
        self.endpoint = EndpointProgram(folder, "endpoint", str(endpoint), str(self._arrived), str(seed))
        self.others: list[Program] = [self.endpoint]

    # Lives ----------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        await self.start_others()
        await self.service.start()

    async def start_others(self) -> None:
        """Begin a life of the others, those of them that have none."""
        begun = [each for each in self.others if not each.running]
        heard = [_lines(each) for each in begun]
        for each in begun:
            each.spawn()
        for each, before in zip(begun, heard, strict=True):
            await until(lambda each=each, before=before: self._listens(each, before), "it listens")

    def _listens(self, program: Program, before: int) -> bool:
        assert program.running, f"the {program.output.stem} ended: {program.tail()}"
        return _lines(program) > before

    async def wipe(self) -> None:
        for program in self.others:
            program.end(signal.SIGKILL)
        await self.service.wipe()

    # Set-up ---------------------------------------------------------------------------------------------------------

    async def senders(self, api: Api) -> list[Sender]:
        """Whatever messages go through."""
        return await asyncio.gather(*(self.sender(api, index, pace) for index, pace in enumerate(PACES)))

    async def sender(self, api: Api, index: int, pace: int) -> Sender:
        """A number in live, and the template that the provider holds for it."""
        token = secrets.token_urlsafe(24)
        name = f"10654035224292{index}"
        number = await api.number(name, per_second=pace, per_day=1_000_000, access_token=token, business="business")
        self.secrets += [token, number["displayPhone"][1:]]
        await api.call("POST", "/v2/templates/sync", {"numberId": number["id"]})

        async def approved() -> Any:
            held = await api.call("GET", "/v2/templates", numberId=number["id"], status="approved")
            return next((each for each in held["items"] if each["name"] == "order_update"), None)

        template = await until(approved, "the provider's templates are here", every=0.1)
        return Sender(number["id"], number["phoneNumberId"], template["id"], pace)

    def credit(self) -> None:
        """Give the environment more than everything here can cost."""
        self.service.command(
            "wallet", "credit", "--env", "live", "--coins", str(COINS), "--reference", "begin", "--json"
        )

    async def subscribe(self, api: Api, events: Sequence[str] = EVENTS) -> str:
        """Have the endpoint told of these events; what fails is tried again soon. Answers the subscription's id."""
        wanted = {"url": self._endpoint_url, "events": list(events), "includePii": False}
        retry = {"maxAttempts": 15, "backoffSeconds": BACKOFF}
        made = await api.call("POST", "/webhooks", {**wanted, "retry": retry})
        self._webhook_secret = made["secret"]
        self.secrets.append(self._webhook_secret)
        return str(made["id"])

    # Records --------------------------------------------------------------------------------------------------------

    @property
    def database(self) -> Mapping[str, Any]:
        """How to connect to the database, past whatever is between it and the service."""
        return self.service.cluster().connect_arguments

    def postgres_log(self) -> Path | None:
        """The log of a PostgreSQL that is the round's own."""
        return self.service.cluster().log

    def received(self) -> int:
        """How many requests the provider has on record."""
        raise NotImplementedError

    def requests(self) -> list[Request]:
        raise NotImplementedError

    def evidence_of(self, messages: Mapping[str, Mapping[str, Any]]) -> tuple[list[Request], list[Request]]:
        """The requests under the ids of these messages, and, where that is not how they were recorded, as they were."""
        return self.requests(), []

    def broken_off(self) -> list[datetime]:
        """When the provider ended a connection."""
        return []

    def arrivals(self) -> list[Arrival]:
        return read_arrivals(self._arrived, self._webhook_secret)


class SimulatedStage(Stage):
    """A stage whose provider is the simulator. `shares`: of its requests, what befalls them.

    `codes`: likewise, of error codes of the hosted API.
    `idempotent`: a bridge that sends each key once, and a service that is told so.
    """

    def __init__(
        self,
        folder: Path,
        *,
        seed: int,
        protocol: Protocol,
        shares: Mapping[str, float],
        latency_ms: int = 20,
        codes: Mapping[int, float] = CODES,
        idempotent: bool = False,
    ) -> None:
        transport = TRANSPORTS[protocol]
        # An SMS centre takes no more than 8 characters.
        given = [secrets.token_urlsafe(size) for size in (6 if protocol == "smpp" else 24, 24, 24)]
        token, secret, app_secret = given
        place = Place(
            port=free_port(),
            token=token,
            secret=secret,
            app_secret=app_secret,
            idempotent=idempotent,
        )
        super().__init__(folder, seed=seed, **transport.settings(place))
        self.secrets += given
        self.mail, self.at_once, self._transport = transport.mail, transport.at_once, transport
        self._record = folder / "record.jsonl"
        self._counted, self._read_to = 0, 0
        self.provider = Program(
            folder,
            "simulator",
            *("simulator", "--record", str(self._record), "--seed", str(seed), "--latency-ms", str(latency_ms)),
            *transport.options(place),
            *("--cloud-callback-url", f"{self.service.url}/v2/callbacks/chatapp/cloud"),
            *(part for name, share in shares.items() for part in (f"--{name}-share", str(share))),
            *(part for code, share in codes.items() for part in ("--code-share", f"{code}={share}")),
            SIMULATOR_SECRET=secret,
            SIMULATOR_APP_SECRET=app_secret,
            SIMULATOR_TOKEN=token,
        )
        self.others.insert(0, self.provider)

    def received(self) -> int:
        if self._record.exists():
            with self._record.open("rb") as file:
                file.seek(self._read_to)
                whole, end, _ = file.read().rpartition(b"\n")
            self._counted += whole.count(b'{"id"')
            self._read_to += len(whole) + len(end)
        return self._counted

    def requests(self) -> list[Request]:
        return read_record(self._record)

    async def senders(self, api: Api) -> list[Sender]:
        if self._transport.per_second is None:
            return await super().senders(api)
        return [Sender("", SOURCE, "", self._transport.per_second)]

    def evidence_of(self, messages: Mapping[str, Mapping[str, Any]]) -> tuple[list[Request], list[Request]]:
        recorded = self.requests()
        return (requests_of(recorded, messages), recorded) if self._transport.in_parts else (recorded, [])

    def broken_off(self) -> list[datetime]:
        found = [value for kind, value in notes(self._record) if kind == UNBIND]
        return [datetime.fromisoformat(value["at"]) for value in found]

    def repeats(self) -> list[Mapping[str, Any]]:
        """The repeats that an idempotent bridge answered: `id` and `providerMessageId`."""
        return [value for kind, value in notes(self._record) if kind == "repeat"]


def _lines(program: Program) -> int:
    return program.output.read_text().count("listens") if program.output.exists() else 0
