"""Providers that misbehave: whatever a bridge does, nothing leaves twice, and each message says where it is (C29.2)."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.crash.evidence import Evidence, is_uncertain
from tests.crash.rows import read_rows
from tests.crash.traffic import Sender
from tests.crash.verdict_wallet import wallet_violations
from tests.faults.providers import Mode
from tests.faults.proxy import before_postgres
from tests.faults.stage import FaultStage
from tests.program import Api
from tests.waiting import until

from recado.simulator.record import Request
from recado.storage.core.connections.postgres import Database

MESSAGES = 12  # to each number: more than what opens its circuit
PER_SECOND = 10
SHOWN_WITHIN = 30.0  # seconds; a call without an answer lasts 15
HEALED_WITHIN = 45.0  # a circuit whose first probe failed opens for 10 s more
NO_CONNECTION, NUMBER_PAUSED = "no_connection", "number_paused"


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold. `asked`: what becomes of a message that the provider was asked to send once or more.

    `waits`: what the others wait for meanwhile, None when none of them has to. `heals`: what waits leaves as soon as
    the provider answers well.
    """

    asked: str
    waits: str | None = None
    heals: bool = True


ACCEPTED = Rule("read")
UNKNOWN = Rule("uncertain", NO_CONNECTION)
UNKNOWN_LATE = Rule("uncertain")  # the first outcome comes when all of them have left
DOWN = Rule("queued", NO_CONNECTION)
PAUSED = Rule("queued", NUMBER_PAUSED)

RULES: Mapping[Mode, Rule] = {
    Mode.WELL: ACCEPTED,
    Mode.ERROR: UNKNOWN,
    Mode.RESET: UNKNOWN,
    Mode.HANG: UNKNOWN_LATE,
    Mode.DRIP: UNKNOWN_LATE,
    Mode.SLOW_DRIP: ACCEPTED,
    Mode.GARBAGE: UNKNOWN,
    Mode.NOT_HTTP: UNKNOWN,
    Mode.WRONG_JSON: UNKNOWN,
    Mode.HUGE_BODY: UNKNOWN,
    Mode.HTML: UNKNOWN,
    Mode.WRONG_TYPE: ACCEPTED,
    Mode.NO_ID: UNKNOWN,
    Mode.SAME_ID: ACCEPTED,
    Mode.SLOW_NEGATIVE: PAUSED,
    Mode.SLOW_HUGE: Rule("queued", NUMBER_PAUSED, heals=False),  # for 6 h
    Mode.SLOW_DATE: PAUSED,
    Mode.SLOW_NOT: PAUSED,
    Mode.SLOW_TEXT: PAUSED,
    Mode.UNAVAILABLE: PAUSED,
    Mode.UNAUTHORIZED: DOWN,
    Mode.REDIRECT: DOWN,
    Mode.CLOSES: ACCEPTED,
    Mode.CUT_BODY: UNKNOWN,
    Mode.EARLY: ACCEPTED,
    Mode.DOUBLED: ACCEPTED,
    Mode.UNHEARD_OF: ACCEPTED,
    Mode.FORGED: Rule("sent"),
}
FEW = (Mode.ERROR, Mode.NO_ID, Mode.SLOW_NEGATIVE, Mode.UNAUTHORIZED, Mode.EARLY, Mode.DOUBLED, Mode.FORGED)


@dataclass(frozen=True, slots=True)
class Told:
    """One message: where it is, and what it waits for."""

    id: str
    end: str
    waits: str | None


class Scene:
    """A service, and for each mode a number whose sends end like that. `senders`: by mode."""

    def __init__(self, stage: FaultStage, api: Api) -> None:
        self.stage = stage
        self.senders: dict[Mode, Sender] = {}
        self._api = api

    async def number(self, mode: Mode) -> None:
        index = list(Mode).index(mode)
        sender = await self.stage.sender(self._api, 10 + index, PER_SECOND)
        self.senders[mode] = sender
        self.stage.bridge.modes[sender.phone_number_id] = mode

    async def send(self, mode: Mode, more: str = "1000") -> None:
        sender, index = self.senders[mode], list(Mode).index(mode)
        body = {"numberId": sender.number_id, "type": "template", "templateId": sender.template_id}
        for count in range(MESSAGES):
            to = f"+55119{index:02}{count:02}{more}"
            await self._api.call("POST", "/messages", {**body, "to": to, "templateVars": ["hello"]})

    def asked(self, mode: Mode) -> Counter[str]:
        """How often the provider was asked to send each message."""
        return Counter(request.id for request in self.requests(mode))

    def requests(self, mode: Mode) -> list[Request]:
        account = self.senders[mode].phone_number_id
        return [request for request in self.stage.requests() if request.number == account]

    async def messages(self, mode: Mode) -> dict[str, Mapping[str, Any]]:
        """The messages of that number, each with what it waits for."""
        number_id = self.senders[mode].number_id
        listed = [message async for message in self._api.pages("/messages", numberId=number_id)]
        waiting = [message["id"] for message in listed if message["status"] in ("queued", "sending")]
        explained = await asyncio.gather(*(self._api.call("GET", f"/messages/{each}") for each in waiting))
        return {message["id"]: message for message in (*listed, *explained)}

    async def told(self, mode: Mode) -> list[Told]:
        return [
            Told(
                name,
                "uncertain" if is_uncertain(message) else message["status"],
                (message.get("waiting") or {}).get("reason"),
            )
            for name, message in (await self.messages(mode)).items()
        ]

    async def evidence(self) -> Evidence:
        messages = {}
        for mode in self.senders:
            messages.update(await self.messages(mode))
        rows = await read_rows(self.stage.database)
        return Evidence((), messages, self.stage.requests(), (), tuple(self.senders.values()), rows=rows)


@pytest.mark.long
@pytest.mark.parametrize(
    "modes", [pytest.param(FEW, id="few"), pytest.param(tuple(Mode), id="all", marks=pytest.mark.long)]
)
async def test_whatever_a_bridge_does_nothing_leaves_twice_and_every_message_says_where_it_is(
    modes: tuple[Mode, ...], database: Database, tmp_path: Path
) -> None:
    server = dict(database.server)
    async with before_postgres(server) as (proxy, _):
        stage = FaultStage(tmp_path, seed=1, server=server, proxy=proxy)
        try:
            async with stage.bridge:
                await stage.start()
                key = await asyncio.to_thread(stage.service.key, "live")
                await asyncio.to_thread(stage.credit)
                async with Api(stage.service.url, key) as api:
                    scene = Scene(stage, api)
                    await asyncio.gather(*(scene.number(mode) for mode in modes))
                    await misbehaves_and_heals(scene, modes)
                    if Mode.WELL in modes:
                        await is_deaf_and_hears(scene)
        finally:
            await stage.wipe()


async def misbehaves_and_heals(scene: Scene, modes: Iterable[Mode]) -> None:
    bridge = scene.stage.bridge
    await asyncio.gather(*(scene.send(mode) for mode in modes))
    await agrees(scene, modes, unlike_while_it_lasts, SHOWN_WITHIN)
    doubtful = {mode: {told.id for told in await scene.told(mode) if told.end == "uncertain"} for mode in modes}

    bridge.heal()

    def unlike_afterwards(mode: Mode, messages: list[Told], asked: Mapping[str, int]) -> Iterable[str]:
        rule = RULES[mode]
        end = rule.asked if rule.asked in ("read", "sent") else "read" if rule.heals else "queued"
        for told in messages:
            wanted = "uncertain" if told.id in doubtful[mode] else end
            # What left between the look and the healing: in doubt as well.
            if told.end != wanted and not (rule.asked == told.end == "uncertain" and asked[told.id] == 1):
                yield f"{told}, not {wanted}"

    await agrees(scene, modes, unlike_afterwards, HEALED_WITHIN)
    processed = Counter(request.id for request in scene.stage.requests() if request.outcome.processed)
    assert {name: count for name, count in processed.items() if count > 1} == {}
    assert all(request.idempotency_key == request.id for request in scene.stage.requests())
    assert list(wallet_violations(await scene.evidence())) == []
    assert bridge.callback_answers.get(Mode.FORGED) == {401}
    assert all(200 in answers for mode, answers in bridge.callback_answers.items() if mode is not Mode.FORGED)


async def is_deaf_and_hears(scene: Scene) -> None:
    """What a provider does not read in time is in doubt; it may read it all the same, and report it."""
    scene.stage.bridge.go_deaf()
    before = scene.asked(Mode.WELL)
    await scene.send(Mode.WELL, "2000")

    async def are(end: str) -> bool:
        told = await scene.told(Mode.WELL)
        return [each.end for each in told if each.id not in before] == [end] * MESSAGES

    await until(lambda: are("uncertain"), "all is in doubt", every=0.3)
    assert scene.asked(Mode.WELL) == before
    scene.stage.bridge.heal()
    await until(lambda: are("read"), "all is read", every=0.3)
    assert set(scene.asked(Mode.WELL).values()) == {1}


async def agrees(scene: Scene, modes: Iterable[Mode], unlike: Any, limit: float) -> None:
    """Wait until nothing differs from the rules; AssertionError with what still does."""
    wrong: dict[str, list[str]] = {}

    async def alike() -> bool:
        for mode in [each for each in modes if wrong.get(each.value) != []]:
            wrong[mode.value] = list(unlike(mode, await scene.told(mode), scene.asked(mode)))
        return not any(wrong.values())

    try:
        await until(alike, "all is as it must be", limit=limit, every=0.3)
    except AssertionError:
        lines = [f"{mode}: {line}" for mode, found in wrong.items() for line in found[:5]]
        raise AssertionError("\n".join(lines)) from None


def unlike_while_it_lasts(mode: Mode, messages: list[Told], asked: Mapping[str, int]) -> Iterable[str]:
    rule = RULES[mode]
    if len(messages) != MESSAGES:
        yield f"{len(messages)} messages"
    for told in messages:
        if told.id not in asked and (rule.waits is None or told.end != "queued"):
            yield f"{told}, and the provider was not asked"
        elif told.id in asked and told.end != rule.asked:
            yield f"{told}, not {rule.asked}"
        elif told.id in asked and rule.asked == "uncertain" and asked[told.id] != 1:
            yield f"{told}, asked {asked[told.id]} times"
        elif told.end == "queued" and told.waits != rule.waits:
            yield f"{told} waits not for {rule.waits}"
    if rule.waits and all(told.end != "queued" for told in messages):
        yield f"nothing waits for {rule.waits}"
