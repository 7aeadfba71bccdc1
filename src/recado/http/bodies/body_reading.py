"""Large bodies, read apart from the event loop: what a worker process makes of one, and how the value comes back.

A worker parses, checks and fingerprints the body, and answers in pieces, each of which is read in a millisecond or two.
"""

import importlib
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from recado.domain.core.errors import FieldError, Problem
from recado.engine.turns import turns
from recado.http.bodies.parsing import NUL, parse_json, validate_body
from recado.http.bodies.unknown_fields import unknown_fields

LENGTH: Final = 8  # bytes of the length of a frame between service and worker, big-endian
LARGE: Final = 64 * 1024  # bytes; what is smaller is read at once, unless it holds very much
NEVER_LARGE: Final = 8 * 1024  # bytes: what is not larger is read in two milliseconds, whatever it holds
# Signs of values that are read at once, in some three milliseconds whatever they are: no usual body has as many, but
# those of operations on thousands of recipients.
MOST_AT_ONCE: Final = 6_000
M = TypeVar("M")

MOST_IN_LISTS: Final = 12_000
_MOST_ITEMS: Final = 256  # of a list in one piece
_LARGEST_PIECE: Final = 512 * 1024  # bytes of a piece with several items
MOST_VALUES: Final = 30_000  # in a body of up to 1 MiB, and in anything that cannot be divided


@dataclass(frozen=True, slots=True)
class Job:
    """How to read a body: `model` as `module:name`, the status of one that does not fit, and its most values.

    `by_channel`: other models, see `model_of`.
    """

    model: str
    bad_status: int
    most_values: int | None
    by_channel: Mapping[str, str] = field(default_factory=dict)


Found = tuple[Sequence[Any], str | None]
"""The items of a body, and what was wrong with the rest of it."""
Find = Callable[[bytes], Found]
"""Finds them: a function of a module, or a part of one, as it is called in a worker."""
TOO_MUCH: Final = "malformed: an item holds too many values"


@dataclass(frozen=True, slots=True)
class ItemsJob:
    """How to read a body that is none of an operation's models: by `find`."""

    find: Find


@dataclass
class FoundItems:
    """What `find` found. No slots: its long list follows in pieces, as one of a model does."""

    items: list[Any]
    failure: str | None


@dataclass(frozen=True, slots=True)
class BodyOutcome:
    """What became of a body. `digest`: SHA-256 of its canonical form, unless it is `malformed`.

    `document`: its members that are true or false. `refusal`: it does not fit. Otherwise `value` is the pickled value,
    whose long lists are empty: `lists` names them, with how many pieces each follows in.
    """

    digest: bytes = b""
    document: Mapping[str, bool] = field(default_factory=dict)
    unknown: Sequence[FieldError] = ()
    malformed: Problem | None = None
    refusal: Problem | None = None
    value: bytes = b""
    lists: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """Of a worker; so many `pieces` follow. `outcome` None: reading the body took more memory than allowed.

    `last`: the process ends after it.
    """

    outcome: BodyOutcome | None
    pieces: int
    last: bool


@dataclass(slots=True)
class LargeBody:
    """A body that was read by a worker. `digest`: as that of a `JsonBody`, the same for the same document.

    `document` holds those of its members that are true or false, which decide how it is treated.
    """

    digest: bytes
    document: Mapping[str, bool]
    unknown: Sequence[FieldError]
    _outcome: BodyOutcome = field(repr=False)
    _pieces: Sequence[bytes] = field(repr=False)

    async def value(self) -> Any:
        """The validated value, put together in steps; raises the `Problem` of one that does not fit."""
        outcome, pieces = self._outcome, iter(self._pieces)
        self._pieces = ()
        if outcome.refusal is not None:
            raise outcome.refusal
        value = pickle.loads(outcome.value)  # noqa: S301 - written by our own process
        for name, count in outcome.lists:
            items = value.__dict__[name]
            for _ in range(count):
                await turns.next()
                items += pickle.loads(next(pieces))  # noqa: S301 - as above
        return value


def is_large(raw: bytes, most_at_once: int) -> bool:
    """Whether a worker reads the body: for its size, or since what it holds would keep everybody waiting (C31).

    Values are counted by their signs, also where these stand in texts. To read an array or an object takes as long as
    two other values, or longer; members are copied for each one that is missing. U+0000 is looked for value by value.
    """
    if len(raw) <= NEVER_LARGE:
        return False
    if len(raw) > LARGE:
        return True
    signs = 2 * (raw.count(b"[") + raw.count(b"{")) + raw.count(b",") + raw.count(b":")
    return signs > most_at_once or NUL in raw


def has_many_items(raw: bytes) -> bool:
    """The same of a body that `find` reads. Each escape may cost as much as a value there."""
    return is_large(raw, MOST_AT_ONCE) or (len(raw) > NEVER_LARGE and raw.count(b"\\") > MOST_AT_ONCE)


def name_of(model: type[BaseModel]) -> str:
    """What a worker finds the model by; it must stand in a module."""
    return f"{model.__module__}:{model.__qualname__}"


def model_of(document: Any, usual: M, by_channel: Mapping[str, M]) -> M:
    """The model of a body: that of the channel which it names, where that has one of its own."""
    if not by_channel or type(document) is not dict:
        return usual
    channel = document.get("channel")
    return by_channel.get(channel, usual) if isinstance(channel, str) else usual


def large_body(outcome: BodyOutcome, pieces: Sequence[bytes]) -> LargeBody:
    """What a worker answered; raises the `Problem` of a body that is no JSON."""
    if outcome.malformed is not None:
        raise outcome.malformed
    return LargeBody(outcome.digest, outcome.document, outcome.unknown, outcome, pieces)


# In the worker --------------------------------------------------------------------------------------------------------


def read(job: Job, raw: bytes) -> tuple[BodyOutcome, list[bytes]]:
    """What the body says, and the pieces of its long lists."""
    model = _found(job.model)
    try:
        body = parse_json(raw, job.most_values)
    except Problem as problem:
        return BodyOutcome(malformed=problem), []
    del raw
    if job.by_channel:
        model = _found(model_of(body.document, job.model, job.by_channel))
    unknown = unknown_fields(model, body.document)
    known = BodyOutcome(body.digest, _switches(model, body.document), unknown)
    try:
        return _divided(known, validate_body(model, body, job.bad_status))
    except Problem as problem:
        return replace(known, refusal=problem), []


def read_items(job: ItemsJob, raw: bytes) -> tuple[BodyOutcome, list[bytes]]:
    """What `find` finds in the body, but those items that nobody could take over in one step."""
    try:
        given, failure = job.find(raw)
    except MemoryError:  # told as that of any body
        raise
    except Exception as error:  # noqa: BLE001 - a fault of `find`, which would end the next process too
        given, failure = (), f"not read: {type(error).__name__}"
    items = [each for each in given if not _holds_more(each, MOST_VALUES)]
    if len(items) < len(given):
        failure = failure or TOO_MUCH
    pieces = [
        piece
        for start in range(0, len(items), _MOST_ITEMS)
        for piece in _pieces(items[start : start + _MOST_ITEMS], "")
    ]
    value = pickle.dumps(FoundItems([], failure), pickle.HIGHEST_PROTOCOL)
    return BodyOutcome(value=value, lists=(("items", len(pieces)),)), pieces


def _found(name: str) -> type[BaseModel]:
    module, _, qualified = name.partition(":")
    model: type[BaseModel] = getattr(importlib.import_module(module), qualified)
    return model


def _switches(model: type[BaseModel], document: Any) -> dict[str, bool]:
    names = (info.alias or name for name, info in model.model_fields.items())
    return {name: document[name] for name in names if isinstance(document, dict) and type(document.get(name)) is bool}


def _divided(known: BodyOutcome, value: Any) -> tuple[BodyOutcome, list[bytes]]:
    lists: list[tuple[str, int]] = []
    pieces: list[bytes] = []
    if isinstance(value, BaseModel):
        for name, items in value.__dict__.items():
            if isinstance(items, list) and len(items) > _MOST_ITEMS:
                before = len(pieces)
                for start in range(0, len(items), _MOST_ITEMS):
                    pieces += _pieces(items[start : start + _MOST_ITEMS], name)
                lists.append((name, len(pieces) - before))
        for name, _ in lists:
            value.__dict__[name] = []
    return replace(known, value=_dumped(value, ""), lists=tuple(lists)), pieces


def _pieces(items: list[Any], name: str) -> Iterator[bytes]:
    piece = _dumped(items, name) if len(items) == 1 else pickle.dumps(items, pickle.HIGHEST_PROTOCOL)
    if len(piece) <= _LARGEST_PIECE or len(items) == 1:
        yield piece
    else:
        middle = len(items) // 2
        yield from _pieces(items[:middle], name)
        yield from _pieces(items[middle:], name)


def _dumped(value: Any, name: str) -> bytes:
    """Pickled; refused where so much hangs on one value that reading it would keep everybody waiting."""
    dumped = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    if len(dumped) > MOST_VALUES and _holds_more(value, MOST_VALUES):
        error = FieldError(f"/{name}" if name else "", "TOO_LONG", "holds more values than any field takes")
        raise Problem("VALIDATION_ERROR", "A field of the body holds more values than any field takes.", errors=[error])
    return dumped


def _holds_more(value: Any, most: int) -> bool:
    """Whether more than `most` values hang on this one, itself included."""
    count, open_values = 0, [value]
    while open_values:
        count += 1
        if count > most:
            return True
        one = open_values.pop()
        if isinstance(one, BaseModel):
            open_values += one.__dict__.values()
        elif is_dataclass(one):
            open_values += [getattr(one, each.name) for each in fields(one)]
        elif isinstance(one, dict):
            open_values += one.values()
        elif isinstance(one, list | tuple):
            open_values += one
    return False
