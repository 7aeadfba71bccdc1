"""The owner's side of its fronts, over real links to processes that do nothing, in virtual time."""

import asyncio
import os
import random
import signal
import socket
import subprocess
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from tests.captured import capture_logs
from tests.waiting import until

from recado.domain.messages.changes import ConsentRefused, KeyChanged, NumberChanged
from recado.domain.senders.sender import SenderKey
from recado.engine.clock import VirtualClock
from recado.engine.link import Link
from recado.fronts import frames, place, supervision
from recado.fronts.program import OTHER_PROGRAM
from recado.fronts.supervision import Fronts, FrontsFailed
from recado.services.dispatch.hints import Queued

PATIENCE = 30.0  # real seconds
BOOTED = 1_000.0  # seconds before the virtual clock began
LIMIT = frames.ANSWERS_FOR
PROGRAM = "this one"


class Other:
    """The front's side: its link, spoken by hand, and a process that sleeps."""

    def __init__(self, beginning, process):
        self.number = beginning.number
        self.process = process
        self.end = socket.socket(fileno=os.dup(beginning.link))
        self.gives = socket.socket(fileno=os.dup(beginning.gives))
        self.link = None
        self.heard = []
        self.clocks = []
        self.follows = True
        self.losses = 0

    async def connect(self):
        takes = {kind: self._taker(kind) for kind in (frames.BEAT, frames.CHANGE, frames.LEAVE, frames.DRAIN)}
        takes[frames.CLOCK] = self.clocks.append
        self.link = await Link.over(self.end, takes, lost=self._lose)

    async def ready(self):
        await self.connect()
        self.link.give(frames.READY, PROGRAM)

    def of(self, kind):
        return [said for each, said in self.heard if each == kind]

    def ack(self, number):
        self.link.give(frames.ACK, number)

    def _taker(self, kind):
        def take(said):
            self.heard.append((kind, said))
            if self.follows and kind not in (frames.LEAVE, frames.DRAIN):
                self.ack(said[0])

        return take

    def _lose(self):
        self.losses += 1

    def close(self):
        self.process.kill()
        self.process.wait()
        self.gives.close()
        if self.link is not None:
            self.link.close()
        else:
            self.end.close()


class Shares:
    """Nobody is given numbers."""

    sends_until = 0.0

    def ready(self, number, pid, say):
        """It is not to prepare."""

    def ended(self, number, pid):
        """It had none."""


class Service:
    """What the fronts belong to."""

    def __init__(self):
        self.clock = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.begun = []
        self.command = ["sleep", "60"]
        self.refuses = 0  # beginnings
        self.refusal = OSError(24, "Too many open files")
        self.told, self.deliveries, self.changes, self.counts = [], [], [], []
        self.channels = []
        self.bound = ()
        self.fronts = self.make(2)

    def make(self, count, shares=None):
        return Fronts(
            count, door=self, hearing=self, begin=self._beginning, processes=self, inherited=[], clock=self.clock,
            elapsed=self.elapsed, random=random.Random(3), shares=shares,
        )  # fmt: skip

    def elapsed(self):
        return BOOTED + self.clock.monotonic()

    def _beginning(self, number, link, gives, listening):
        return SimpleNamespace(number=number, program=PROGRAM, link=link, gives=gives, listening=listening)

    def begin(self, beginning, descriptors):
        if self.refuses:
            self.refuses -= 1
            raise self.refusal
        assert {beginning.link, beginning.gives} <= set(descriptors)
        process = subprocess.Popen(self.command)
        self.begun.append(Other(beginning, process))
        return process

    def add_front(self, channel):
        self.channels.append(channel)

    def remove_front(self, channel):
        self.channels.remove(channel)
        channel.close()

    def tell(self, sender, message):
        self.told.append((sender, message))

    def queued(self, deliveries):
        self.deliveries.extend(deliveries)

    def changed(self, change):
        self.changes.append(change)
        self.fronts.changed(change)  # as the assembly does

    def counted(self, accepted, refused, requests):
        self.counts.append((accepted, refused, requests))

    async def start(self):
        starting = asyncio.ensure_future(self.fronts.start())
        await until(lambda: len(self.begun) == 2, "both are begun")
        for each in self.begun:
            await each.ready()
        await starting
        await self.all_followed()
        return self.begun

    async def all_followed(self):
        await until(lambda: all(p._followed == p._said for p in self.fronts._places), "all is followed")

    async def again(self, count):
        """The so many-th beginning of all."""

        async def begun():
            await self.clock.advance(0.05)
            return len(self.begun) >= count

        await until(begun, f"{count} are begun")
        return self.begun[count - 1]


@pytest.fixture
async def service():
    made = Service()
    yield made
    for each in made.begun:
        each.process.kill()
    made.fronts._ending = True
    await made.fronts.stop()
    for each in made.begun:
        each.close()


CHANGE = KeyChanged("key_1")
SAID = ["KeyChanged", "key_1"]


def waits(fronts):
    """What a request that changed something waits for."""
    others = fronts.reached()
    return None if others is None else asyncio.ensure_future(others)


async def test_without_a_change_nothing_is_waited_for(service):
    await service.start()
    assert service.fronts.reached() is None
    assert service.fronts.running == 2


async def test_a_change_is_waited_for_until_all_have_followed_it(service):
    first, second = await service.start()
    second.follows = False
    service.fronts.changed(CHANGE)
    waiting = waits(service.fronts)
    await until(lambda: first.of(frames.CHANGE) and second.of(frames.CHANGE), "it is said")
    await until(lambda: not service.fronts._places[0].owes, "the first has followed it")
    assert not waiting.done()
    ((number, *said),) = second.of(frames.CHANGE)
    assert said == SAID
    second.ack(number - 1)
    second.link.give(frames.QUEUED, [["org", "sub"]])  # heard after it
    await until(lambda: service.deliveries, "the front is heard")
    assert not waiting.done()
    second.ack(number)
    await asyncio.wait_for(waiting, PATIENCE)
    assert service.fronts.reached() is None


async def test_a_change_of_which_fronts_have_no_copy_is_not_said(service):
    first, _ = await service.start()
    service.fronts.changed(ConsentRefused((("org", "live", 1),)))
    assert service.fronts.reached() is None
    service.fronts.changed(CHANGE)
    await until(lambda: first.of(frames.CHANGE), "the other one is said")
    assert len(first.of(frames.CHANGE)) == 1


async def test_a_front_that_follows_nothing_is_waited_for_until_it_may_answer_no_more(service):
    first, second = await service.start()
    beaten = max(moment for _, moment in second.of(frames.BEAT))
    second.follows = False
    await service.clock.advance(0.3)
    service.fronts.changed(CHANGE)
    waiting = waits(service.fronts)
    await service.clock.advance(LIMIT - 0.3)
    assert service.elapsed() == beaten + LIMIT
    assert not waiting.done()
    await service.clock.advance(0.1)
    assert waiting.done()
    assert service.fronts.reached() is None  # nor do others wait for it
    # No beat before the change lets it answer longer; those after it come behind the change.
    kinds = [kind for kind, _ in second.heard]
    at = kinds.index(frames.CHANGE)
    assert all(moment + LIMIT <= service.elapsed() for kind, (_, moment, *_) in second.heard[:at])
    assert frames.BEAT in kinds[at:]
    assert first.process.poll() is None


async def test_the_end_of_a_front_ends_the_wait_for_it(service):
    _, second = await service.start()
    second.follows = False
    service.fronts.changed(CHANGE)
    waiting = waits(service.fronts)
    second.process.kill()
    await asyncio.wait_for(waiting, PATIENCE)
    assert service.clock.monotonic() == 0.0


async def test_no_change_waits_for_a_front_that_is_beginning_for_it_answers_nothing(service):
    first, second = await service.start()
    second.process.kill()
    third = await service.again(3)
    service.fronts.changed(CHANGE)
    await until(lambda: first.of(frames.CHANGE), "it is said")
    await until(lambda: service.fronts.reached() is None, "nothing is waited for")
    await service.clock.advance(3)  # beats for the others
    await third.connect()
    third.link.give(frames.QUEUED, [["org", "sub"]])
    await until(lambda: service.deliveries, "it is heard")
    assert third.of(frames.BEAT) == []  # without one it answers nothing, and so it remembers nothing
    third.link.give(frames.READY, PROGRAM)
    await until(lambda: third.of(frames.BEAT), "it may answer")
    ((_, moment),) = third.of(frames.BEAT)
    assert moment == service.elapsed()
    kinds = [kind for kind, _ in third.heard]
    assert kinds.index(frames.BEAT) == len(kinds) - 1  # what was changed meanwhile came before
    service.fronts.changed(NumberChanged("org", "live", "num"))
    assert service.fronts.reached() is not None


async def test_a_change_before_the_link_is_joined_precedes_the_first_beat(service):
    """In the turn of the loop in which a front is begun there is no link yet: it cannot be told, nor can it answer."""
    starting = asyncio.ensure_future(service.fronts.start())
    await asyncio.sleep(0)
    while not service.begun:
        await asyncio.sleep(0)
    assert service.fronts._places[0]._link is None
    service.fronts.changed(CHANGE)
    assert service.fronts.reached() is None
    await until(lambda: len(service.begun) == 2, "both are begun")
    for each in service.begun:
        await each.ready()
    await starting
    await until(lambda: all(each.of(frames.BEAT) for each in service.begun), "both may answer")
    assert [each.of(frames.BEAT)[0][1] for each in service.begun] == [service.elapsed()] * 2


async def test_a_front_that_is_silent_is_ended_and_another_takes_its_place(service):
    first, second = await service.start()
    second.follows = False
    for _ in range(9):
        await service.clock.advance(0.5)
        await until(lambda: service.fronts._places[0]._followed == service.fronts._places[0]._said, "one is")
    assert second.process.poll() is None
    await service.clock.advance(1.5)
    await until(lambda: second.process.poll() == -signal.SIGKILL, "it is killed")
    third = await service.again(3)
    assert third.number == second.number
    assert service.fronts.restarts == 1
    await third.ready()
    await until(lambda: service.fronts.running == 2, "it listens")
    assert first.process.poll() is None


async def test_a_front_that_is_late_with_all_it_follows_is_not_silent(service):
    """Under load there is always something that it has not followed yet."""
    _, second = await service.start()
    place = service.fronts._places[1]
    second.follows = False
    for _ in range(40):
        service.fronts.changed(CHANGE)
        await service.clock.advance(0.5)
        await until(lambda: service.fronts._places[0]._followed == service.fronts._places[0]._said, "one is")
        await until(lambda: len(second.heard) >= place._said, "all is heard")
        second.ack(place._said - 1)
        await until(lambda: place._followed == place._said - 1, "it is followed, but for the last")
    assert second.process.poll() is None


async def test_a_front_that_does_not_come_up_again_is_ended(service):
    _, second = await service.start()
    second.process.kill()
    third = await service.again(3)
    for _ in range(int(place.READY_LIMIT / 0.5) + 2):
        await service.clock.advance(0.5)
        await service.all_followed()
    await until(lambda: third.process.poll() is not None, "it is ended")


async def test_fronts_are_begun_again_after_longer_and_longer(service):
    _, _ = await service.start()
    delays, count = [], 2
    for _ in range(4):
        service.begun[-1].process.kill()
        await until(lambda: service.fronts.running == 1, "it has ended")
        await until(lambda: service.fronts._places[1]._again is not None, "its end is seen")
        ended, count = service.clock.monotonic(), count + 1
        await service.again(count)
        delays.append(service.clock.monotonic() - ended)
    assert delays == sorted(delays)
    assert delays[-1] > 3 * delays[0]


class Faulty(Exception):
    """What nobody expects."""


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), Faulty()])
async def test_a_front_that_cannot_be_begun_is_begun_later(service, error):
    _, second = await service.start()
    service.refuses = 2
    service.refusal = error
    second.process.kill()
    third = await service.again(3)
    await third.ready()
    await until(lambda: service.fronts.running == 2, "it listens")
    assert service.refuses == 0


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), Faulty()])
async def test_a_front_to_which_no_link_can_be_made_is_told_of_and_begun_again_later_and_later(
    service, monkeypatch, error
):
    async def over(*_, **__):
        raise error

    _, second = await service.start()
    with capture_logs() as logs, monkeypatch.context() as meanwhile:
        meanwhile.setattr(place, "Link", SimpleNamespace(over=over))
        second.process.kill()
        for count in (3, 4):
            begun = await service.again(count)
            await until(lambda begun=begun: begun.process.poll() == -signal.SIGKILL, "it is ended")
            await until(lambda: service.fronts._places[1]._again is not None, "its end is seen")
    told = [each for each in logs if each["event"] == "front_not_joined"]
    assert [(each["front"], each["error"]) for each in told] == [(2, type(error).__qualname__)] * 2
    await (await service.again(5)).ready()
    await until(lambda: service.fronts.running == 2, "it listens")
    assert service.fronts._places[1]._failures == 3


async def test_a_lost_link_ends_the_front(service):
    _, second = await service.start()
    second.link.close()
    await until(lambda: second.process.poll() == -signal.SIGKILL, "it is killed")


async def test_what_a_front_says_is_heard(service):
    first, _ = await service.start()
    sender = ["org", "live", "sms", "sms:live:one"]
    first.link.give(frames.ROWS, [*sender, []])
    first.link.give(frames.QUEUED, [["org", "sub"]])
    first.link.give(frames.FIGURES, {"accepted": {"sms": 3}, "refused": 4, "requests": [], "dropped": 2})
    first.link.give(frames.CHANGED, SAID)
    await until(lambda: service.changes, "all is heard")
    assert service.told == [(SenderKey(*sender), Queued())]
    assert service.deliveries == [("org", "sub")]
    assert service.counts == [({"sms": 3}, 4, [])]
    assert service.fronts.dropped == 2
    assert service.changes == [CHANGE]
    await until(lambda: all(each.of(frames.CHANGE) for each in service.begun), "all fronts are told")


async def test_fronts_have_the_clock_of_their_owner(service):
    """Each is told once it listens, unless somebody set the clock: then when that is believed."""
    fronts = await service.start()
    for each in fronts:
        await until(lambda each=each: each.clocks == [None], "it believes what it sees")
    service.clock.set_by = timedelta(hours=1)
    fronts[0].process.kill()
    third = await service.again(3)
    await third.ready()
    await until(lambda: third.of(frames.BEAT), "it answers")
    assert third.clocks == []
    service.fronts.clock_believed()
    await until(lambda: third.clocks == [None], "it believes what it sees, too")


async def test_a_stop_drains_and_none_is_begun_again(service):
    fronts = await service.start()
    stopping = asyncio.ensure_future(service.fronts.stop())
    for each in fronts:
        await until(lambda each=each: each.of(frames.DRAIN), "it is to end")
        assert each.process.poll() is None
        each.process.terminate()
    await asyncio.wait_for(stopping, PATIENCE)
    await service.fronts.stop()
    await service.clock.advance(60)
    assert len(service.begun) == 2
    assert service.channels == []
    assert service.fronts.running == 0


async def test_a_stop_leaves_calls_of_fronts_that_send_as_long_as_it_is_waited_for_them(service):
    service.fronts = service.make(2, Shares())
    first, second = await service.start()
    stopping = asyncio.ensure_future(service.fronts.stop())
    for each in (first, second):
        await until(lambda each=each: each.of(frames.DRAIN), "it is to end")
        each.link.give(frames.ANSWERED)
    await asyncio.wait_for(stopping, PATIENCE)
    ending = asyncio.ensure_future(service.fronts.calls_end())
    await asyncio.sleep(0)  # it has begun, however soon the first one ends
    first.process.terminate()
    await until(lambda: first.process.poll() is not None, "its calls are over")
    assert second.process.poll() is None
    assert not ending.done()
    ending.cancel()  # the time of the stop is over
    await until(lambda: second.process.poll() == -signal.SIGKILL, "what is left is ended")
    await service.fronts.stop()


async def test_a_stop_ends_at_once_what_is_still_beginning(service):
    first, second = await service.start()
    second.process.kill()
    third = await service.again(3)
    stopping = asyncio.ensure_future(service.fronts.stop())
    await until(lambda: third.process.poll() is not None, "it is ended")
    first.process.terminate()
    await asyncio.wait_for(stopping, PATIENCE)


async def test_a_stop_before_another_is_begun_again_begins_none(service):
    first, second = await service.start()
    second.process.kill()
    await until(lambda: service.fronts._places[1]._again is not None, "its end is seen")
    stopping = asyncio.ensure_future(service.fronts.stop())
    first.process.terminate()
    await asyncio.wait_for(stopping, PATIENCE)
    await service.clock.advance(60)
    assert len(service.begun) == 2


async def test_a_front_that_does_not_end_is_killed(service, monkeypatch):
    monkeypatch.setattr(supervision, "DRAIN_LIMIT", 0.05)
    fronts = await service.start()
    await asyncio.wait_for(service.fronts.stop(), PATIENCE)
    assert [each.process.poll() for each in fronts] == [-signal.SIGKILL] * 2


async def test_a_start_fails_where_none_comes_up(service, monkeypatch):
    monkeypatch.setattr(place, "READY_LIMIT", 0.05)
    with pytest.raises(FrontsFailed):
        await service.fronts.start()
    await service.fronts.stop()
    assert all(each.process.poll() is not None for each in service.begun)


async def reload(service):
    """Told to replace both: the third is begun."""
    service.fronts.reload()
    await until(lambda: len(service.begun) == 3, "the next one is begun")
    return service.begun[2]


async def test_a_reload_replaces_one_after_the_other_by_one_that_takes_requests_already(service):
    first, second = await service.start()
    third = await reload(service)
    assert third.number == first.number
    assert first.of(frames.LEAVE) == []
    await third.ready()
    await until(lambda: first.of(frames.LEAVE), "the first is to end")
    assert service.fronts.running == 2
    assert len(service.begun) == 3
    assert second.of(frames.LEAVE) == []
    first.process.terminate()
    await until(lambda: len(service.begun) == 4, "the last one is begun")
    fourth = service.begun[3]
    assert fourth.number == second.number
    await fourth.ready()
    await until(lambda: second.of(frames.LEAVE), "the second is to end")
    second.process.terminate()
    await until(service.fronts._reloading.done, "all are replaced")
    assert (service.fronts.running, service.fronts.restarts, len(service.channels)) == (2, 0, 2)
    service.fronts.reload()  # and again
    await until(lambda: len(service.begun) == 5, "another is begun")


async def test_reloads_that_are_asked_for_while_one_is_under_way_are_one_that_follows_it(service):
    old = list(await service.start())
    third = await reload(service)
    service.fronts.reload()
    service.fronts.reload()
    await third.connect()
    third.link.give(frames.QUEUED, [["org", "sub"]])
    await until(lambda: service.deliveries, "turns of the loop are over")
    assert len(service.begun) == 3
    for position in range(2, 6):  # each place twice
        new = service.begun[position]
        if new is third:
            new.link.give(frames.READY, PROGRAM)
        else:
            await new.ready()
        await until(lambda leaving=old[position - 2]: leaving.of(frames.LEAVE), "the one before is to end")
        old[position - 2].process.terminate()
        old.append(new)
        if position < 5:
            await until(lambda count=position + 2: len(service.begun) == count, "the next one is begun")
    await until(service.fronts._reloading.done, "all are replaced twice")
    assert len(service.begun) == 6


async def test_a_front_that_leaves_is_told_of_changes_and_waited_for(service):
    """It still answers what comes on its connections."""
    first, _ = await service.start()
    third = await reload(service)
    await third.ready()
    await until(lambda: first.of(frames.LEAVE), "the first is to end")
    await until(lambda: third.of(frames.BEAT), "the third may answer")
    first.follows = False
    service.fronts.changed(CHANGE)
    waiting = waits(service.fronts)
    await until(lambda: first.of(frames.CHANGE) and third.of(frames.CHANGE), "it is said")
    await service.clock.advance(0.5)
    await until(lambda: len(first.of(frames.BEAT)) > 1, "and so are beats")
    assert not waiting.done()
    first.ack(first.heard[-1][1][0])
    await asyncio.wait_for(waiting, PATIENCE)


@pytest.mark.parametrize("program", [None, "another one"])
async def test_a_front_of_another_program_is_refused_and_the_one_before_stays(service, program):
    first, second = await service.start()
    third = await reload(service)
    await third.connect()
    third.link.give(frames.READY, program)
    await until(service.fronts._reloading.done, "it is over")
    assert third.process.poll() == -signal.SIGKILL
    assert (service.fronts.running, service.fronts.restarts) == (2, 0)
    assert first.of(frames.LEAVE) == second.of(frames.LEAVE) == []
    await service.clock.advance(60)
    assert len(service.begun) == 3


async def test_the_log_tells_of_a_front_that_found_another_program_and_when_one_is_back(service):
    await service.start()
    service.command = ["sh", "-c", f"exit {OTHER_PROGRAM}"]
    with capture_logs() as logs:
        service.begun[1].process.kill()
        await service.again(3)
        await until(lambda: len(logs) == 2, "both ends are told")
        service.command = ["sleep", "60"]
        await (await service.again(4)).ready()
        await until(lambda: service.fronts.running == 2, "it listens")
    told = [(each["event"], each["front"], each.get("status")) for each in logs]
    assert told == [
        ("front_ended", 2, -signal.SIGKILL), ("front_of_other_program", 2, None), ("front_back", 2, None)
    ]  # fmt: skip


async def test_a_reload_ends_with_a_new_front_that_dies_or_is_not_begun(service):
    first, _ = await service.start()
    (await reload(service)).process.kill()
    await until(service.fronts._reloading.done, "it is over")
    service.refuses = 1
    service.fronts.reload()
    await until(service.fronts._reloading.done, "this one, too")
    assert service.fronts.running == 2
    await service.clock.advance(60)
    assert len(service.begun) == 3
    assert first.of(frames.LEAVE) == []


@pytest.mark.parametrize("step", ["came_up", "leave"])
async def test_a_reload_that_fails_is_told_of_and_leaves_a_front_in_each_place(service, monkeypatch, step):
    async def fails(_):
        raise Faulty

    first, second = await service.start()
    with capture_logs() as logs, monkeypatch.context() as meanwhile:
        meanwhile.setattr(place.FrontPlace, step, fails)
        third = await reload(service)
        if step == "leave":
            await third.ready()
        await until(service.fronts._reloading.done, "it is over")
    assert [(each["front"], each["error"]) for each in logs if each["event"] == "reload_stopped"] == [(1, "Faulty")]
    assert service.fronts._reloading.exception() is None
    ended, stays = (third, first) if step == "came_up" else (first, third)
    assert ended.process.poll() == -signal.SIGKILL
    assert stays.process.poll() is second.process.poll() is None
    assert (service.fronts.running, len(service.channels)) == (2, 2)
    service.fronts.reload()  # and again
    await until(lambda: len(service.begun) == 4, "another is begun")


async def test_an_old_front_that_dies_before_the_new_one_is_ready_is_not_begun_beside_it(service):
    first, _ = await service.start()
    third = await reload(service)
    first.process.kill()
    await until(lambda: service.fronts.running == 1, "it has ended")
    await third.ready()
    await until(lambda: len(service.begun) == 4, "the reload goes on")
    assert service.fronts.running == 2
    assert [each.number for each in service.begun] == [1, 2, 1, 2]
    assert service.fronts._places[0]._again is None


async def test_a_new_front_that_dies_once_it_has_the_place_is_begun_again(service):
    first, _ = await service.start()
    third = await reload(service)
    await third.ready()
    await until(lambda: first.of(frames.LEAVE), "the first is to end")
    third.process.kill()
    fourth = await service.again(4)
    assert fourth.number == third.number
    assert service.fronts.restarts == 1


async def test_a_front_that_does_not_leave_is_ended(service, monkeypatch):
    monkeypatch.setattr(place, "LEAVE_LIMIT", 0.05)
    first, _ = await service.start()
    await (await reload(service)).ready()
    await until(lambda: len(service.begun) == 4, "the reload goes on")
    assert first.process.poll() == -signal.SIGKILL


@pytest.mark.parametrize("ready", [False, True])
async def test_a_stop_during_a_reload_drains_those_that_answer_and_ends_the_others(service, ready):
    first, second = await service.start()
    third = await reload(service)
    if ready:
        await third.ready()
        await until(lambda: first.of(frames.LEAVE), "the first is to end")
    stopping = asyncio.ensure_future(service.fronts.stop())
    for each in (first, second, third) if ready else (first, second):
        await until(lambda each=each: each.of(frames.DRAIN), "it is to finish")
        each.process.terminate()
    await asyncio.wait_for(stopping, PATIENCE)
    assert third.process.poll() is not None
    service.fronts.reload()
    await service.clock.advance(60)
    assert len(service.begun) == 3
    assert service.channels == []


async def test_a_front_that_never_lives_long_is_begun_again_after_longer_and_longer(service):
    await service.start()
    delays, count = [], 2
    for _ in range(4):
        service.begun[-1].process.kill()
        await until(lambda: service.fronts._places[1]._again is not None, "its end is seen")
        ended, count = service.clock.monotonic(), count + 1
        await (await service.again(count)).ready()
        await until(lambda: service.fronts.running == 2, "it listens")
        delays.append(service.clock.monotonic() - ended)
    assert delays[-1] > 3 * delays[0]
    for _ in range(int(place.LIVED / 0.5) + 1):
        await service.clock.advance(0.5)
        await service.all_followed()
    service.begun[-1].process.kill()
    await until(lambda: service.fronts._places[1]._again is not None, "its end is seen")
    ended = service.clock.monotonic()
    await service.again(count + 1)
    assert service.clock.monotonic() - ended <= delays[0] + 0.1
