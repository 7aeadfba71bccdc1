"""Timers of an actor: they tell it later, even when its mailbox is full, and end with it."""

import asyncio

from tests.engine.test_actor import Break, Note, Recorder, Wait

from recado.engine.supervisor import Supervisor


async def test_a_timer_tells_the_actor_later_and_can_be_called_off(runtime, clock):
    class Sleeper(Recorder):
        async def started(self):
            self.context.tell_later(10, Note(1))
            self.context.tell_later(20, Note(2)).cancel()
            self.context.tell_later(30, Note(3))

    root = Supervisor("root", runtime=runtime)
    ref = root.spawn("sleeper", Sleeper)
    await root.start()
    await clock.advance(15)
    assert await ref.ask("log") == [1]
    await clock.advance(60)
    assert await ref.ask("log") == [1, 3]
    await root.stop()


async def test_a_due_timer_gets_into_a_full_mailbox(runtime, clock):
    class Sleeper(Recorder):
        async def started(self):
            self.context.tell_later(1, Note(1))

    log = []
    root = Supervisor("root", runtime=runtime)
    ref = root.spawn("sleeper", lambda: Sleeper(log), mailbox_limit=1)
    await root.start()
    gate = asyncio.Event()
    ref.tell(Wait(gate))
    await clock.settle()
    ref.tell(Note(0))
    await clock.advance(1)
    gate.set()
    await clock.settle()
    assert log == [0, 1]
    await root.stop()


async def test_timers_end_with_the_incarnation_that_set_them(runtime, clock):
    class Sleeper(Recorder):
        async def handle(self, message):
            if message == "set":
                self.context.tell_later(10, Note(1))
                return None
            return await super().handle(message)

    log = []
    root = Supervisor("root", runtime=runtime)
    ref = root.spawn("sleeper", lambda: Sleeper(log))
    await root.start()
    await ref.ask("set")
    ref.tell(Break())
    await clock.advance(60)
    assert await ref.ask("log") == []
    await root.stop()
