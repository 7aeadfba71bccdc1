"""The places where this runtime holds on to pykka: a pykka that moves them fails here first, not in production."""

import importlib.metadata
import inspect
import re

import pykka
import pytest
from pykka import _actor, _envelope, messages

from recado.engine.actor import Actor
from recado.engine.mailbox import ActorStop, Mailbox
from recado.engine.ref import ActorRef
from recado.engine.reply import ReplyFuture

HOOKS = {"_create_actor_inbox", "_create_future", "_start_actor_loop"}


def test_pykka_is_the_minor_version_that_was_read():
    assert importlib.metadata.version("pykka").startswith("4.5.")


def test_the_hooks_for_new_actor_types_are_the_three_that_are_implemented():
    assert pykka.Actor.__abstractmethods__ == HOOKS
    assert Actor.__abstractmethods__ == frozenset()
    assert {name for name in HOOKS if name in vars(Actor)} == HOOKS


def test_the_hooks_keep_their_shapes():
    for name in ("_create_actor_inbox", "_create_future"):
        assert isinstance(inspect.getattr_static(pykka.Actor, name), staticmethod)
        assert not inspect.signature(getattr(pykka.Actor, name)).parameters
    assert list(inspect.signature(pykka.Actor._start_actor_loop).parameters) == ["self"]


def test_the_inbox_offers_what_pykka_asks_of_one():
    asked = {name for name in vars(_actor.ActorInbox) if not name.startswith("_")}
    assert asked == {"put", "get", "empty"}
    assert all(callable(getattr(Mailbox, name)) for name in asked)


def test_the_constructors_set_the_fields_that_ours_set_or_answer_and_no_other():
    def fields(constructor):
        return set(re.findall(r"self\.(\w+) = ", inspect.getsource(constructor)))

    assert fields(pykka.Actor.__init__) == {"actor_urn", "actor_inbox", "actor_stopped", "_actor_ref"}
    assert fields(pykka.ActorRef.__init__) == {
        "_actor_weakref",
        "actor_class",
        "actor_urn",
        "actor_inbox",
        "actor_stopped",
    }


def test_pykkas_own_hooks_for_an_actors_life_keep_their_shapes():
    expected = {
        "on_start": ["self"],
        "on_stop": ["self"],
        "on_receive": ["self", "message"],
        "on_failure": ["self", "exception_type", "exception_value", "traceback"],
    }
    for name, parameters in expected.items():
        assert list(inspect.signature(getattr(pykka.Actor, name)).parameters) == parameters


def test_envelopes_and_the_stop_message_are_where_they_were():
    envelope = _envelope.Envelope("message", None)
    assert (envelope.message, envelope.reply_to) == ("message", None)
    assert messages._ActorStop is ActorStop


def test_a_reply_answers_to_every_public_name_of_pykkas_future():
    public = {name for name in vars(pykka.Future) if not name.startswith("_")}
    assert public == {"get", "set", "set_exception", "set_get_hook", "filter", "join", "map", "reduce"}
    assert all(name in vars(ReplyFuture) for name in public)


def test_a_ref_overrides_every_public_method_of_pykkas_that_would_block():
    public = {name for name, value in vars(pykka.ActorRef).items() if inspect.isfunction(value) and name[0] != "_"}
    assert public == {"is_alive", "tell", "ask", "stop", "proxy"}
    assert {name for name in public if name in vars(ActorRef)} == public


class Reference(Actor):
    async def handle(self, message):
        return message


async def test_our_actors_never_enter_pykkas_global_registry():
    ref = Reference.start()
    assert pykka.ActorRegistry.get_by_urn(ref.actor_urn) is None
    assert pykka.ActorRegistry.get_all() == []
    await ref.stop()


async def test_proxies_are_refused_with_a_reason():
    with pytest.raises(NotImplementedError, match="message"):
        Reference.start().proxy()
