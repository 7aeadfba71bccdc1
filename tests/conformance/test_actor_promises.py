"""What pykka promises of every actor, kept by ours: each test runs on pykka's threads and on this runtime."""

import inspect

import pykka
import pytest

from recado.engine.actor import Actor


class Hooks:
    """A plain pykka actor, written with pykka's synchronous hooks only."""

    def __init__(self, diary):
        super().__init__()
        self.diary = diary

    def on_start(self):
        self.diary.append("on_start")

    def on_stop(self):
        self.diary.append("on_stop")

    def on_failure(self, exception_type, exception_value, traceback):
        self.diary.append(f"on_failure {exception_type.__name__} {exception_value} {traceback is not None}")

    def on_receive(self, message):
        if message == "break":
            raise LookupError("broken")
        if message == "stop yourself":
            self.stop()
            return None
        self.diary.append(message)
        return f"{message}!"


class OnThreads(Hooks, pykka.ThreadingActor):
    use_daemon_thread = True


class OnAsyncio(Hooks, Actor):
    pass


async def settled(value):
    """The value of a pykka future on either runtime."""
    if isinstance(value, pykka.ThreadingFuture):
        return value.get(timeout=5)
    return await value if inspect.isawaitable(value) else value


def blocks(ref):
    return issubclass(ref.actor_class, pykka.ThreadingActor)


def ask(ref, message):
    return ref.ask(message, block=False) if blocks(ref) else ref.ask(message)


def stop(ref):
    return ref.stop(block=False) if blocks(ref) else ref.stop()


@pytest.fixture(params=[OnThreads, OnAsyncio])
async def kind(request):
    yield request.param
    pykka.ActorRegistry.stop_all(timeout=5)


async def test_an_actor_is_alive_from_its_start_to_its_stop(kind):
    ref = kind.start([])
    assert ref.is_alive()
    assert await settled(stop(ref)) is True
    assert not ref.is_alive()
    assert await settled(stop(ref)) is False


async def test_urns_are_unique_and_shown_by_the_ref(kind):
    refs = [kind.start([]) for _ in range(20)]
    assert len({ref.actor_urn for ref in refs}) == 20
    assert all(ref.actor_urn.startswith("urn:uuid:") and ref.actor_urn in str(ref) for ref in refs)
    assert refs[0].actor_class is kind


async def test_hooks_run_around_the_messages(kind):
    diary = []
    ref = kind.start(diary)
    ref.tell("one")
    ref.tell("two")
    await settled(stop(ref))
    assert diary == ["on_start", "one", "two", "on_stop"]


async def test_an_ask_gets_the_value_that_on_receive_returned(kind):
    assert await settled(ask(kind.start([]), "one")) == "one!"


async def test_an_error_of_an_ask_goes_to_the_asker_and_the_actor_lives(kind):
    diary = []
    ref = kind.start(diary)
    with pytest.raises(LookupError, match="broken"):
        await settled(ask(ref, "break"))
    assert await settled(ask(ref, "one")) == "one!"
    assert diary == ["on_start", "one"]


async def test_an_error_of_a_tell_runs_on_failure_instead_of_on_stop_and_ends_the_actor(kind):
    diary = []
    ref = kind.start(diary)
    ref.tell("break")
    with pytest.raises(pykka.ActorDeadError):
        await settled(ask(ref, "one"))
    assert not ref.is_alive()
    assert diary == ["on_start", "on_failure LookupError broken True"]


async def test_a_dead_actor_refuses_tells_and_asks(kind):
    ref = kind.start([])
    await settled(stop(ref))
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("one")
    with pytest.raises(pykka.ActorDeadError):
        await settled(ask(ref, "one"))


async def test_an_actor_may_stop_itself_after_what_it_was_told_before(kind):
    diary = []
    ref = kind.start(diary)
    ref.tell("one")
    await settled(ask(ref, "stop yourself"))
    await settled(stop(ref))
    assert diary == ["on_start", "one", "on_stop"]
    assert not ref.is_alive()


async def test_an_actor_whose_constructor_forgets_its_base_cannot_start(kind):
    class Forgetful(kind):
        def __init__(self):
            pass

    with pytest.raises(AttributeError):
        Forgetful.start()
