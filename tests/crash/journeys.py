"""A round of one journey: contacts enter from a list, and the service is killed wherever they are on their way.

Waits and pauses between calls are brought forward in the database: what is due at a moment, and not how long that takes
to come, is what a kill may spoil. Everything else happens as it does for everybody.
"""

import asyncio
import contextlib
import math
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import asyncpg
from tests.crash.crashes import noted_kill
from tests.crash.evidence import Evidence, Kill
from tests.crash.round import SLIPS
from tests.crash.rows import read_rows
from tests.crash.stage import SimulatedStage
from tests.crash.traffic import Sender
from tests.crash.verdict import wrong_ends
from tests.crash.verdict_journeys import Journeys, Passed, Run, journey_violations
from tests.crash.verdict_wallet import wallet_violations
from tests.privacy import found_in_logs
from tests.program import Api
from tests.waiting import until

from recado.simulator.behaviour import Given

PACE = 800  # messages a second, of each of two numbers
SHARES = {"slow-down": 0.001, "refuse": 0.02, "undelivered": 0.03, "duplicate": 0.1, "early": 0.1, "shuffle": 0.1}
SOME_EVENT = ("template.rejected",)  # a subscription has one, whatever it is for
AT_ONCE = 10_000  # contacts in a body
PART = 0.4  # of the contacts: those whose waits are brought forward while the service is killed

_PROGRESS = """
select
    count(*) as begun,
    count(*) filter (where step_id = 'espera' and wake_at > now()) as asleep,
    count(*) filter (where step_id in ('avisar', 'obrigado', 'fim')) as woken,
    count(*) filter (where step_id in ('obrigado', 'fim')) as called
from executions
"""
# As if they had come to the wait, or their last call had ended, a day earlier.
_FORWARD = """
update executions
set arrived_at = arrived_at - interval '1 day', wake_at = now(), awaited_until = now()
where ctid = any(array(
    select ctid from executions
    where status = 'ativa' and step_id = 'espera' and awaited = 'espera' and wake_at > now()
    limit $1
    for update skip locked
))
"""
_CALL_AGAIN = """
with waiting as (
    select organization_id, id, step_id from executions
    where status = 'ativa' and awaited = 'webhook' and wake_at > now()
    for update skip locked
),
moved as (
    update step_calls c set ended_at = c.ended_at - interval '1 day'
    from waiting w
    where c.organization_id = w.organization_id and c.execution_id = w.id and c.step_id = w.step_id
        and c.wanted_at is null
    returning c.execution_id
)
update executions e set wake_at = now(), arrived_at = arrived_at - interval '1 day'
from moved m where e.id = m.execution_id
"""
_UNCOUNTED = "select exists (select from step_count_changes) or exists (select from execution_signals)"
_STUCK = """
select e.id from executions e
left join execution_steps s on s.organization_id = e.organization_id and s.execution_id = e.id and s.step_id = 'ola'
where e.status = 'ativa' and (e.step_id <> 'chegou' or s.message_id <> all($1))
limit 1
"""
_RUNS = "select id, contact_id, status, motivo, step_id from executions where journey_id = $1"
_TRAILS = "select execution_id, step_id, resultado, message_id from execution_steps order by execution_id, place"


class Where(StrEnum):
    """What is going on when the service dies."""

    ENTRY = "mass entry"
    SENDS = "sends"
    WAKES = "a batch of wake-ups"
    CALLS = "calls of the webhook step"


def planned(kills: int) -> list[Where]:
    """Each place in its turn along the way, as often as the others, or once less."""
    places = list(Where)
    return [where for at, where in enumerate(places) for _ in range(kills // 4 + (at < kills % 4))]


def steps_of(first: Sender, second: Sender, webhook_id: str) -> dict[str, dict[str, Any]]:
    """Two sends or three, a condition on the first one's arrival, a wait and a call."""

    def send(sender: Sender, following: str) -> dict[str, Any]:
        return {
            "tipo": "enviar", "canal": "chatapp", "templateId": sender.template_id, "numberId": sender.number_id,
            "variaveis": {"1": {"de": "contato", "campo": "externalId"}}, "proximo": following,
        }  # fmt: skip

    return {
        "ola": send(first, "chegou"),
        "chegou": {
            "tipo": "condicao", "sobre": "ola", "sinal": "entregue", "janelaMinutos": 1_440, "sim": "espera",
            "nao": "outra",
        },
        "outra": send(second, "espera"),
        "espera": {"tipo": "esperar", "minutos": 60, "proximo": "avisar"},
        "avisar": {"tipo": "webhook", "webhookId": webhook_id, "proximo": "obrigado", "seFalhar": "obrigado"},
        "obrigado": send(second, "fim"),
        "fim": {"tipo": "fim"},
    }  # fmt: skip


class JourneyRound:
    """`contacts` go through one journey, and the service dies `kills` times."""

    def __init__(self, folder: Path, *, seed: int, contacts: int, kills: int) -> None:
        self._stage = SimulatedStage(folder, seed=seed, protocol="bridge", shares=SHARES)
        self._random = random.Random(seed)
        self._contacts = contacts
        self._plan = planned(kills)
        self._limit = 60 + contacts / 50  # seconds until something must have happened
        self._kills: list[Kill] = []
        self._begun = time.monotonic()
        self._steps: dict[str, dict[str, Any]] = {}
        self._journey_id = ""
        self.story = [f"seed {seed}, {contacts} contacts, in {folder}"]
        self.brought: list[tuple[int, int]] = []  # at each kill among wake-ups: how many were due, and had been woken

    def tell(self, what: str) -> None:
        self.story.append(f"{time.monotonic() - self._begun:6.1f} s: {what}")
        print(self.story[-1], flush=True)

    async def run(self) -> list[str]:
        """Everything that is wrong."""
        stage = self._stage
        try:
            await stage.start()
            key = await asyncio.to_thread(stage.service.key, "live")
            stage.secrets.append(key)
            await asyncio.to_thread(stage.credit)
            async with Api(stage.service.url, key) as api:
                phones = await self._activate(api)
                for where in self._plan:
                    await self._kill(where)
                evidence, judged = await self._ended(api)
            wrong = [*journey_violations(evidence), *wrong_ends(judged), *wallet_violations(judged)]
            told = [*stage.secrets, *(phone[1:] for phone in self._random.sample(phones, 20))]
            wrong += [*found_in_logs([stage.service.log], SLIPS), *found_in_logs([stage.service.log], told)]
            self._summarize(evidence)
            return wrong
        except BaseException as error:
            error.add_note("\n".join(self.story))
            raise
        finally:
            await stage.wipe()

    # The journey ----------------------------------------------------------------------------------------------------

    async def _activate(self, api: Api) -> list[str]:
        """Import the contacts, put them on a list, and let them enter; their phones."""
        stage = self._stage
        phones = [f"+55119{number:08}" for number in range(self._contacts)]
        people = [{"phone": phone, "externalId": f"person-{at}"} for at, phone in enumerate(phones)]
        list_id = (await api.call("POST", "/v2/lists", {"name": "Everybody"}))["id"]
        for at in range(0, self._contacts, AT_ONCE):
            await self._join(api, list_id, people[at : at + AT_ONCE])
        webhook_id = await stage.subscribe(api, SOME_EVENT)
        senders = [await stage.sender(api, index, PACE) for index in range(2)]
        self._steps = steps_of(*senders, webhook_id)
        definition = {
            "name": "Kills", "gatilho": {"tipo": "lista", "listId": list_id}, "inicio": "ola",
            "passos": [{"id": name, **step} for name, step in self._steps.items()],
        }  # fmt: skip
        self._journey_id = (await api.call("POST", "/v2/journeys", definition))["id"]
        self.tell(f"{self._contacts} contacts begin to enter")
        await api.call("POST", f"/v2/journeys/{self._journey_id}/activate")
        return phones

    async def _join(self, api: Api, list_id: str, people: Sequence[Mapping[str, str]]) -> None:
        made = await api.call("POST", "/contacts/import", {"contacts": people})

        async def imported() -> bool:
            return bool((await api.call("GET", f"/contacts/imports/{made['id']}"))["status"] == "completed")

        await until(imported, "the contacts are imported", limit=self._limit, every=0.1)
        ids = [person["externalId"] for person in people]
        await api.call("POST", f"/v2/lists/{list_id}/members", {"externalIds": ids})

    # Kills ----------------------------------------------------------------------------------------------------------

    async def _kill(self, where: Where) -> None:
        stage = self._stage
        connection = await self._connected()
        try:
            found = await self._moment(where, connection)
        finally:
            await connection.close()
        assert stage.service.end(signal.SIGKILL) == -signal.SIGKILL, "the service had ended by itself"
        claimed, kill = await noted_kill(datetime.now(UTC), stage.database, stage.service.data_dir)
        self._kills.append(kill)
        self.tell(f"killed in {where}: {found}; {claimed} messages claimed, the calls of {len(kill.claimed)} had begun")
        await stage.service.start()

    async def _moment(self, where: Where, connection: asyncpg.Connection) -> str:
        """Come back in the middle of it; what is under way then."""
        same = self._plan.count(where)
        nth = sum(each is where for each in self._plan[: len(self._kills)]) + 1
        share = math.ceil(
            self._contacts * PART / max(1, sum(self._plan.count(each) for each in (Where.WAKES, Where.CALLS)))
        )
        match where:
            case Where.ENTRY:
                wanted = self._contacts * nth // (same + 1)
                now = await self._until(connection, "begun", wanted)
                return f"{now['begun']} of {self._contacts} had entered"
            case Where.SENDS:
                wanted = self._stage.received() + self._contacts // (4 * same)
                await until(lambda: self._stage.received() >= wanted, "more are sent", limit=self._limit, every=0.005)
                return f"{self._stage.received()} requests"
            case Where.WAKES:
                before = await self._until(connection, "asleep", share)
                await connection.execute(_FORWARD, share)
                due = before["woken"] + share
                now = await self._until(connection, "woken", before["woken"] + share // 4)
                self.brought.append((share, now["woken"] - before["woken"]))
                return f"{due - now['woken']} of {share} still to be woken"
            case Where.CALLS:
                before = await self._until(connection, "asleep", share)
                await connection.execute(_FORWARD, share)
                now = await self._until(connection, "called", before["called"] + share // 3)
                return f"{now['called'] - before['called']} of some {share} were called"

    async def _until(self, connection: asyncpg.Connection, what: str, wanted: int) -> asyncpg.Record:
        async def enough() -> asyncpg.Record | None:
            found = await connection.fetchrow(_PROGRESS)
            return found if found[what] >= wanted else None

        return await until(enough, f"{what} is {wanted}", limit=self._limit, every=0.02 + self._contacts / 500_000)

    async def _connected(self) -> asyncpg.Connection:
        return await asyncpg.connect(**self._stage.database)

    # The end --------------------------------------------------------------------------------------------------------

    async def _ended(self, api: Api) -> tuple[Journeys, Evidence]:
        """What there is when nothing moves any more, or when it should not."""
        connection = await self._connected()
        try:
            with contextlib.suppress(AssertionError):  # the verdict says better what is wrong
                await until(
                    lambda: self._is_over(connection),
                    "nobody is on the way",
                    limit=self._limit,
                    every=0.5 + self._contacts / 50_000,
                )
            self.tell("nothing moves any more")
            return await self._evidence(api, connection)
        finally:
            await connection.close()

    async def _is_over(self, connection: asyncpg.Connection) -> bool:
        """Whether all have come to their ends but for those in doubt, every report has arrived, and all is counted."""
        await connection.execute(_FORWARD, self._contacts)
        await connection.execute(_CALL_AGAIN)
        in_doubt = [message_id for kill in self._kills for message_id in kill.claimed]
        if await connection.fetchval("select count(*) from executions") < self._contacts:
            return False
        if await connection.fetchval(_STUCK, in_doubt) is not None or await connection.fetchval(_UNCOUNTED):
            return False
        made = await connection.fetch("select status, count(*) from messages group by status")
        doubted = await connection.fetch("select id, status from messages where id = any($1)", in_doubt)
        return {row[0]: row[1] for row in made} == self._told({row[0]: row[1] for row in doubted})

    def _told(self, in_doubt: Mapping[str, str]) -> Counter[str]:
        """How many messages have each state by the provider's record. `in_doubt`: states of those that may differ."""
        ends = dict.fromkeys(in_doubt, "sending")
        for request in self._stage.requests():
            if request.outcome is Given.REFUSED:
                ends[request.id] = in_doubt.get(request.id, "failed")
            elif request.outcome.processed:
                told = (each for each in ("failed", "read", "delivered") if each in request.receipts)
                ends[request.id] = next(told, "sent")
            elif request.id not in in_doubt:
                ends[request.id] = "queued"
        return Counter(ends.values())

    async def _evidence(self, api: Api, connection: asyncpg.Connection) -> tuple[Journeys, Evidence]:
        stage, path = self._stage, f"/v2/journeys/{self._journey_id}"
        messages = {message["id"]: message async for message in api.pages("/messages")}
        for message_id, message in messages.items():
            if message["status"] == "sending":
                messages[message_id] = await api.call("GET", f"/messages/{message_id}")
        requests = stage.requests()
        trails: dict[str, list[Passed]] = defaultdict(list)
        for row in await connection.fetch(_TRAILS):
            trails[row[0]].append(Passed(row[1], row[2], row[3]))
        runs = [Run(*row, trail=trails[row["id"]]) for row in await connection.fetch(_RUNS, self._journey_id)]
        judged = Evidence([], messages, requests, self._kills, [], rows=await read_rows(stage.database))
        journeys = Journeys(
            "ola",
            self._steps,
            self._contacts,
            runs,
            messages,
            requests,
            stage.arrivals(),
            frozenset(judged.in_doubt()),
            (await api.call("GET", f"{path}/steps"))["items"],
            (await api.call("GET", path))["execucoes"],
        )
        return journeys, judged

    def _summarize(self, evidence: Journeys) -> None:
        repeated = sum(len(calls) - 1 for calls in evidence.calls.values())
        waiting = sum(run.under_way for run in evidence.runs)
        self.tell(
            f"{len(evidence.runs)} executions passed {sum(len(run.trail) for run in evidence.runs)} steps, made "
            f"{len(evidence.messages)} messages, {len(evidence.requests)} requests, {len(evidence.calls)} calls and "
            f"{repeated} repeats of them; {waiting} wait for the outcome of a message in doubt"
        )
