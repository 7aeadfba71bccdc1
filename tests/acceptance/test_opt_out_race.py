"""People refuse, in every way there is, while a bulk of marketing leaves for them: the provider's record is the judge.

After the answer to a refusal no call for that person may begin (C12.5.3). A call that had begun before may still be on
its way: so each answer is followed by questions through the service and through the provider, which come after
whatever was on its way, and the last of them is a mark on the record. What stands behind the mark came too late, and no
two clocks are compared.
"""

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest
from tests.program import Api, Program, Service, free_port, running
from tests.waiting import until

from recado.simulator.record import Request, read_record, recipient_hash

SECRET = "a secret between the two"
ACCOUNT = "106540352242922"
PER_SECOND = 150  # those who refuse have eight seconds: a busy machine may take some of them
PEOPLE = 1_200
QUESTIONS = 3  # a call is on its way at the second turn of the service's loop after it began

# A message that goes from `sending` back to `queued` was stopped between its claim and its call: here, by a refusal.
WATCH = """
create table stopped (message_id text);
create function note_stopped() returns trigger language plpgsql as $$
begin
    insert into stopped values (new.id);
    return null;
end $$;
create trigger stopped after update on messages for each row
when (old.status = 'sending' and new.status = 'queued') execute function note_stopped();
"""


@dataclass
class Race:
    """A number in live, and many people; those at every fifth place are no contacts."""

    api: Api
    session: aiohttp.ClientSession
    database: Any
    provider_url: str
    record: Path
    people: list[str] = field(default_factory=lambda: [f"+55119800{n:05}" for n in range(PEOPLE)])
    contacts: dict[str, str] = field(default_factory=dict)
    number_id: str = ""
    template_id: str = ""
    marks: dict[str, str] = field(default_factory=dict)  # by phone: what stands on the record after the answer
    ways: dict[str, str] = field(default_factory=dict)  # by phone
    _front: int = 0
    _read_to: int = 0

    def __post_init__(self) -> None:
        self._places = {recipient_hash(phone).encode(): place for place, phone in enumerate(self.people)}

    async def prepare(self) -> None:
        self.number_id = (
            await self.api.number(ACCOUNT, per_second=PER_SECOND, access_token="access", business="business")
        )["id"]
        await self.api.call("POST", "/v2/templates/sync", {"numberId": self.number_id})

        async def approved() -> Any:
            held = await self.api.call("GET", "/v2/templates", numberId=self.number_id, status="approved")
            return next((each["id"] for each in held["items"] if each["category"] == "marketing"), None)

        self.template_id = await until(approved, "the provider's templates are here", every=0.1)
        known = [{"phone": phone} for place, phone in enumerate(self.people) if place % len(WAYS)]
        await self.api.call("POST", "/contacts/import", {"contacts": known})
        self.contacts = {each["phone"]: each["id"] async for each in self.api.pages("/contacts")}
        await self.database.execute(WATCH)

    async def begin(self) -> Any:
        body = {"numberId": self.number_id, "type": "template", "templateId": self.template_id, "templateVars": ["hi"]}
        return await self.api.call("POST", "/messages/bulk", {**body, "recipients": [{"to": to} for to in self.people]})

    def front(self) -> int:
        """The place behind the last person whom the provider was called for."""
        with self.record.open("rb") as file:
            file.seek(self._read_to)
            whole, end, _ = file.read().rpartition(b"\n")
        self._read_to += len(whole) + len(end)
        called = (self._places.get(recipient) for recipient in re.findall(rb'"recipient":"(\w+)"', whole))
        self._front = max(self._front, *(place + 1 for place in called if place is not None), 0)
        return self._front

    async def post(self, path: str, body: Mapping[str, Any]) -> None:
        """A request to the provider."""
        async with self.session.post(self.provider_url + path, json=body) as answer:
            assert answer.status < 300, await answer.text()

    async def stopped(self) -> set[str]:
        """The messages that were claimed, and went back to the queue in place of leaving."""
        return {row["message_id"] for row in await self.database.fetch("select message_id from stopped")}

    # Ways to refuse -------------------------------------------------------------------------------------------------

    async def by_phone(self, phone: str) -> None:
        await self.api.call("POST", "/contacts/opt-out", {"phone": phone})

    async def by_contact(self, phone: str) -> None:
        await self.api.call("POST", "/contacts/opt-out", {"contactId": self.contacts[phone]})

    async def by_patch(self, phone: str) -> None:
        refusal = {"optIn": {"status": "denied", "source": "form"}}
        await self.api.call("PATCH", f"/contacts/{self.contacts[phone]}", refusal)

    async def by_import(self, phone: str) -> None:
        rows = [{"phone": phone, "optIn": {"status": "denied"}}]
        imported = await self.api.call("POST", "/contacts/import", {"contacts": rows})
        assert (imported["status"], imported["failed"]) == ("completed", 0)

    async def by_keyword(self, phone: str) -> None:
        """Nobody is answered: the refusal stands once the contact says so."""
        await self.post("/control/inbound", {"number": ACCOUNT, "from": phone, "text": "Sair!", "protocol": "bridge"})

        async def refused() -> bool:
            contact = await self.api.call("GET", f"/contacts/{self.contacts[phone]}")
            return bool(contact["optIn"]["status"] == "denied")

        await until(refused, "the keyword is obeyed", every=0.002)

    # The race -------------------------------------------------------------------------------------------------------

    async def refuse(self, way: str) -> None:
        """Refuse for one person after the other, around those whose turn it is, until everybody had theirs."""
        loop, place = asyncio.get_running_loop(), list(WAYS).index(way)
        took = 0.0
        for turn in count():
            # While a refusal is on its way others leave: its person stands where the front is now, or will be then; of
            # every other one behind that, or ways that are slow on a busy machine would never be in time.
            leaving = int(took * PER_SECOND) + 12
            near = self.front() + turn * 3 % leaving + turn % 2 * leaving
            near += (place - near) % len(WAYS)
            mine = next((who for who in self.people[near :: len(WAYS)] if who not in self.marks), None)
            if mine is None:
                return
            self.ways[mine], self.marks[mine] = way, f"mark-{place}-{turn}"
            began = loop.time()
            await WAYS[way](self, mine)
            took = loop.time() - began
            await self.mark(self.marks[mine])

    async def mark(self, name: str) -> None:
        """Come back when every call that had begun by now is on the record, with a mark behind them."""
        for _ in range(QUESTIONS):
            await self.api.call("GET", "/healthz")
        for question in range(QUESTIONS):
            last = question + 1 == QUESTIONS
            await self.post("/send", {"id": name if last else "question", "account": "marks", "to": "nobody"})


WAYS: Mapping[str, Callable[[Race, str], Awaitable[None]]] = {
    "opt-out by phone": Race.by_phone,
    "opt-out by contact": Race.by_contact,
    "patch": Race.by_patch,
    "import": Race.by_import,
    "keyword": Race.by_keyword,
}


@pytest.fixture
async def race(tmp_path: Path) -> AsyncIterator[Race]:
    port, record = free_port(), tmp_path / "record.jsonl"
    service = Service(
        tmp_path,
        BILLING_ENABLED="false",
        ADAPTER_CHATAPP="bridge",
        BRIDGE_CHATAPP_URL=f"http://127.0.0.1:{port}",
        BRIDGE_CHATAPP_TOKEN="any",
        BRIDGE_CHATAPP_SECRET=SECRET,
    )
    provider = Program(
        tmp_path,
        "simulator",
        *("simulator", "--listen", f"127.0.0.1:{port}", "--record", str(record), "--secret", SECRET),
        *("--protocol", "bridge", "--silent-share", "1"),
        *("--callback-url", f"{service.url}/v2/callbacks/chatapp/bridge"),
    )
    provider.spawn()
    try:
        await until(lambda: re.search("listens on", provider.output.read_text()), "the simulator listens")
        async with running(service), aiohttp.ClientSession() as session:
            token = await asyncio.to_thread(service.key, "live")
            one_by_one = asyncpg.create_pool(**service.cluster().connect_arguments, min_size=1, max_size=1)
            async with one_by_one as database, Api(service.url, token) as api:
                made = Race(api, session, database, f"http://127.0.0.1:{port}", record)
                await made.prepare()
                yield made
    finally:
        provider.end(signal.SIGKILL)


@pytest.mark.long
async def test_no_call_begins_after_the_answer_to_a_refusal_however_it_came(race: Race) -> None:
    batch = await race.begin()
    await asyncio.gather(*map(race.refuse, WAYS))

    async def completed() -> bool:
        return bool((await race.api.call("GET", f"/v2/batches/{batch['id']}"))["status"] == "completed")

    await until(completed, "the batch is through", every=0.05)
    messages = {each["to"]: each async for each in race.api.pages("/messages", batchId=batch["id"])}
    assert messages.keys() == set(race.people)
    record = read_record(race.record)

    assert late_calls(race, record) == []
    calls = {call.recipient for call in record if call.number == ACCOUNT}
    never_called = [who for who in race.marks if recipient_hash(who) not in calls]
    assert {messages[who].get("lastError") for who in never_called} == {"opted_out: the contact opted out"}
    assert {who for who, each in messages.items() if each["status"] == "failed"} == set(never_called)
    # It was a race: refusals of every way were in time, and some only just, when the message was claimed already.
    assert {race.ways[who] for who in never_called} == set(WAYS)
    stopped = await race.stopped()
    assert stopped
    assert stopped <= {messages[who]["id"] for who in never_called}


def late_calls(race: Race, record: list[Request]) -> list[str]:
    """The calls that stand behind the mark of their recipient, each with how late it was."""
    places = {request.id: place for place, request in enumerate(record)}
    late = []
    for who, mark in race.marks.items():
        marked = places[mark]
        for call in record[marked:]:
            if call.recipient == recipient_hash(who):
                late_by = (call.at - record[marked].at).total_seconds() * 1_000
                late.append(f"refused ({race.ways[who]}), answered, marked, and called {late_by:.1f} ms after the mark")
    return late
