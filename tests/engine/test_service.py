"""The start and stop contract, of groups of services."""

import pytest

from recado.engine.service import ServiceGroup


class Part:
    def __init__(self, name, diary, *, start=None, stop=None):
        self.name, self.diary = name, diary
        self.start_error, self.stop_error = start, stop

    async def start(self):
        if self.start_error:
            raise self.start_error
        self.diary.append(f"+{self.name}")

    async def stop(self):
        self.diary.append(f"-{self.name}")
        if self.stop_error:
            raise self.stop_error


async def test_a_group_starts_in_order_and_stops_in_reverse_and_twice_does_nothing():
    diary = []
    group = ServiceGroup([Part("a", diary), Part("b", diary)])
    await group.start()
    await group.start()
    await group.stop()
    await group.stop()
    assert diary == ["+a", "+b", "-b", "-a"]


async def test_a_failed_start_is_unwound_and_can_be_tried_again():
    diary = []
    last = Part("c", diary, start=OSError("port in use"))
    group = ServiceGroup([Part("a", diary), Part("b", diary), last])
    with pytest.raises(OSError, match="port"):
        await group.start()
    assert diary == ["+a", "+b", "-b", "-a"]
    last.start_error = None
    await group.start()
    assert diary[4:] == ["+a", "+b", "+c"]
    await group.stop()


async def test_the_first_error_survives_an_unwinding_that_fails_too():
    group = ServiceGroup([Part("a", [], stop=ValueError("stuck")), Part("b", [], start=OSError("port"))])
    with pytest.raises(OSError, match="port") as failure:
        await group.start()
    assert "stuck" in "".join(failure.value.__notes__)


async def test_all_are_stopped_even_when_one_fails_to():
    diary = []
    group = ServiceGroup([Part("a", diary), Part("b", diary, stop=ValueError("stuck")), Part("c", diary)])
    await group.start()
    with pytest.raises(ExceptionGroup) as failure:
        await group.stop()
    assert diary[3:] == ["-c", "-b", "-a"]
    assert len(failure.value.exceptions) == 1


async def test_a_group_that_never_started_stops():
    diary = []
    await ServiceGroup([Part("a", diary)]).stop()
    assert diary == []
