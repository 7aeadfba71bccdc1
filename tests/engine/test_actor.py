"""One actor: order, replies, failures, its bounded mailbox and its end."""

import asyncio
from dataclasses import dataclass
from functools import partial

import pytest
import structlog

from recado.engine.actor import Actor
from recado.engine.errors import ActorDeadError, AskTimeout, HandlerCancelled, MailboxFull, UnhandledMessage
from recado.engine.mailbox import Envelope
from recado.engine.supervisor import Supervisor


@dataclass(frozen=True, slots=True)
class Note:
    value: int


@dataclass(frozen=True, slots=True)
class Wait:
    gate: asyncio.Event


@dataclass(frozen=True, slots=True)
class Break:
    text: str = "broken"


class Recorder(Actor):
    """Keeps what it is told, in a list that outlives it."""

    def __init__(self, log=None):
        super().__init__()
        self.log = [] if log is None else log

    async def handle(self, message):
        match message:
            case Note(value):
                self.log.append(value)
                return len(self.log)
            case Wait(gate):
                await gate.wait()
                return None
            case Break(text):
                raise LookupError(text)
            case "cancelled within":
                raise asyncio.CancelledError
            case "log":
                return list(self.log)
        return await super().handle(message)


async def test_messages_of_one_sender_are_handled_in_order_one_at_a_time():
    gate = asyncio.Event()
    ref = Recorder.start()
    ref.tell(Note(1))
    ref.tell(Wait(gate))
    for value in range(2, 500):
        ref.tell(Note(value))
    early = ref.ask("log")
    gate.set()
    assert await early == list(range(1, 500))


async def test_an_ask_gets_the_handlers_value():
    assert await Recorder.start().ask(Note(1)) == 1


async def test_a_failing_ask_answers_the_asker_and_spares_the_actor():
    ref = Recorder.start()
    with pytest.raises(LookupError, match="broken"):
        await ref.ask(Break())
    assert await ref.ask(Note(1)) == 1


async def test_an_actor_may_choose_to_fail_with_an_ask():
    class Strict(Recorder):
        def is_fatal(self, error):
            return isinstance(error, LookupError)

    ref = Strict.start()
    with pytest.raises(LookupError):
        await ref.ask(Break())
    with pytest.raises(ActorDeadError):
        await ref.ask(Note(1))


async def test_a_failing_tell_without_a_supervisor_ends_the_actor_and_its_queued_asks():
    ref = Recorder.start()
    ref.tell(Break())
    with pytest.raises(ActorDeadError):
        await ref.ask(Note(1))
    with pytest.raises(ActorDeadError):
        ref.tell(Note(1))


async def test_a_handler_cancelled_from_within_answers_without_cancelling_the_asker_or_others():
    ref, other = Recorder.start(), Recorder.start()
    with pytest.raises(HandlerCancelled):
        await ref.ask("cancelled within")
    assert await ref.ask(Note(1)) == 1
    assert await other.ask(Note(1)) == 1


async def test_a_cancelled_tell_ends_only_its_own_actor():
    ref, other = Recorder.start(), Recorder.start()
    ref.tell("cancelled within")
    with pytest.raises(ActorDeadError):
        await ref.ask(Note(1))
    assert await other.ask(Note(1)) == 1


async def test_an_asker_that_leaves_does_not_disturb_the_handler():
    gate = asyncio.Event()
    ref = Recorder.start()

    async def ask():
        await ref.ask(Wait(gate))

    asker = asyncio.create_task(ask())
    await asyncio.sleep(0)
    asker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asker
    gate.set()
    assert await ref.ask(Note(1)) == 1


async def test_an_ask_gives_up_after_its_time_out_on_the_actors_clock(runtime, clock):
    root = Supervisor("root", runtime=runtime)
    ref = root.spawn("slow", Recorder)
    await root.start()
    gate = asyncio.Event()
    reply = ref.ask(Wait(gate), timeout=5)
    await clock.advance(4.9)
    assert not reply.done()
    await clock.advance(0.1)
    with pytest.raises(AskTimeout):
        await reply
    gate.set()
    assert await ref.ask(Note(1), 5) == 1
    await root.stop()


async def test_everything_told_before_a_stop_is_handled_and_asks_after_it_die():
    log = []
    ref = Recorder.start(log)
    gate = asyncio.Event()
    ref.tell(Wait(gate))
    for value in range(10):
        ref.tell(Note(value))
    stopped = ref.stop()
    late = ref.ask(Note(99))
    gate.set()
    assert await stopped is True
    assert log == list(range(10))
    with pytest.raises(ActorDeadError):
        await late
    assert await ref.stop() is False


async def test_idle_actors_share_one_empty_queue_and_lose_nothing_to_it(runtime):
    root = Supervisor("root", runtime=runtime)
    logs = ([], [])
    one, other = (root.spawn(index, partial(Recorder, log)) for index, log in enumerate(logs))
    await root.start()
    await one.ask(Note(0))
    await other.ask(Note(0))
    for _ in range(3):
        await asyncio.sleep(0)
    assert one.actor_inbox.queue is other.actor_inbox.queue
    one.tell(Note(1))
    one.tell(Note(2))
    other.actor_inbox.put_urgent(Envelope(Note(3)))
    await root.stop()
    assert logs == ([0, 1, 2], [0, 3])


async def test_a_full_mailbox_refuses_and_never_grows(runtime):
    root = Supervisor("root", runtime=runtime)
    log = []
    ref = root.spawn("small", lambda: Recorder(log), mailbox_limit=3)
    await root.start()
    gate = asyncio.Event()
    busy = ref.ask(Wait(gate))
    await asyncio.sleep(0)
    for value in range(3):
        ref.tell(Note(value))
    with pytest.raises(MailboxFull):
        ref.tell(Note(3))
    with pytest.raises(MailboxFull):
        await ref.ask(Note(3))
    assert len(ref.actor_inbox) == 3
    gate.set()
    await busy
    await root.stop()  # a stop gets through a bound
    assert log == [0, 1, 2]


async def test_a_stop_gets_into_a_full_mailbox(runtime):
    root = Supervisor("root", runtime=runtime)
    log = []
    ref = root.spawn("small", lambda: Recorder(log), mailbox_limit=1)
    await root.start()
    ref.tell(Note(1))
    assert await ref.stop() is True
    assert log == [1]
    await root.stop()


async def test_an_unknown_message_is_named_by_its_type_only():
    with pytest.raises(UnhandledMessage) as refusal:
        await Recorder.start().ask("a secret text")
    assert "secret" not in str(refusal.value)
    assert "str" in str(refusal.value)


async def test_an_actor_that_never_waits_lets_others_run():
    class Echo(Actor):
        turns = 0

        async def handle(self, message):
            Echo.turns += 1
            self.actor_ref.tell(message)

    ref = Echo.start()
    ref.tell("again")
    for _ in range(10):
        await asyncio.sleep(0)
    assert Echo.turns > 100
    ref.actor_inbox.get()
    assert await asyncio.wait_for(ref.stop(), 30) is True


async def test_an_actor_knows_who_it_is(runtime, clock):
    class Who(Actor):
        async def handle(self, message):
            return self.context.key, self.context.path, self.context.clock.now(), self.context.random.random()

    root = Supervisor("root", runtime=runtime)
    ref = root.spawn("number-1", Who)
    await root.start()
    key, path, now, chance = await ref.ask("who")
    assert (key, path, now) == ("number-1", "root/number-1", clock.now())
    assert 0 <= chance < 1
    await root.stop()


async def test_an_actor_does_not_run_in_the_log_context_of_its_teller():
    class Context(Actor):
        async def handle(self, message):
            return structlog.contextvars.get_contextvars()

    with structlog.contextvars.bound_contextvars(request_id="req_1"):
        assert await Context.start().ask("context") == {}


async def test_an_idle_actor_has_no_task():
    before = asyncio.all_tasks()  # what other tests left
    refs = [Recorder.start() for _ in range(100)]
    for ref in refs:
        await ref.ask(Note(1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() <= before


async def test_an_actor_that_stops_itself_finishes_what_it_was_told_before():
    class OneShot(Recorder):
        async def handle(self, message):
            if message == "last":
                self.stop()
                return None
            return await super().handle(message)

    log = []
    ref = OneShot.start(log)
    ref.tell("last")
    ref.tell(Note(1))
    await ref.stop()
    assert log == [1]
    assert not ref.is_alive()
