"""Questions to a process that sends: parts of an answer, and none."""

import asyncio
from typing import Any

from recado.fronts import asks, frames
from recado.fronts.asks import Asks


class Said:
    """What was said; all of it goes."""

    def __init__(self) -> None:
        self.frames: list[tuple[str, Any]] = []

    def __call__(self, kind: str, said: Any) -> bool:
        self.frames.append((kind, said))
        return True


async def test_an_answer_in_parts_is_for_whoever_asked() -> None:
    questions, said = Asks(), Said()
    first = asyncio.ensure_future(questions.ask(said, asks.NUMBERS, None))
    second = asyncio.ensure_future(questions.ask(said, asks.NUMBER, ["org", "test", "chatapp", "num"]))
    await asyncio.sleep(0)
    (_, (one, *_)), (kind, (two, *rest)) = said.frames
    assert (kind, rest) == (frames.ASK, [asks.NUMBER, ["org", "test", "chatapp", "num"]])
    questions.answered([one, ["a"], True])
    questions.answered([two, "b", False])
    questions.answered([one, ["c"], False])
    assert await first == [["a"], ["c"]]
    assert await second == ["b"]


async def test_what_is_not_said_or_comes_too_late_is_no_answer(monkeypatch: Any) -> None:
    monkeypatch.setattr(asks, "LIMIT", 0.01)
    questions, said = Asks(), Said()
    assert await questions.ask(lambda kind, said: False, asks.NUMBERS, None) == []
    assert await questions.ask(said, asks.NUMBERS, None) == []
    assert len(said.frames) == 1  # it was not asked again


async def test_one_that_was_silent_is_asked_again_when_it_speaks(monkeypatch: Any) -> None:
    monkeypatch.setattr(asks, "LIMIT", 0.01)
    questions, said = Asks(), Said()
    assert await questions.ask(said, asks.NUMBERS, None) == []
    assert await questions.ask(said, asks.NUMBERS, None) == []
    ((_, (asked, *_)),) = said.frames
    questions.answered([asked, [], False])
    monkeypatch.setattr(asks, "LIMIT", 60.0)
    again = asyncio.ensure_future(questions.ask(said, asks.NUMBERS, None))
    await asyncio.sleep(0)
    questions.answered([asked + 1, "so", False])
    assert await again == ["so"]
