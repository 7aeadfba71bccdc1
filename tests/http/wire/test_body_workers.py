"""Large bodies are read in other processes: what comes back, and what becomes of a process that fails."""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.captured import capture_logs
from tests.http.wire.harm import Body
from tests.waiting import until

from recado.domain.core.errors import Problem, Unavailable
from recado.engine.clock import VirtualClock
from recado.http.api.call import Call
from recado.http.bodies import body_workers
from recado.http.bodies.body_workers import LIMIT_SECONDS, MOST_WAITING, READY_AFTER, BodyWorkers
from recado.http.bodies.parsing import parse_json
from recado.http.wire.reply import Reply


@pytest.fixture
async def clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))


@pytest.fixture
async def workers(clock: VirtualClock) -> AsyncIterator[BodyWorkers]:
    running = BodyWorkers(clock)
    await running.start()
    yield running
    await running.stop()


async def read(workers: BodyWorkers, document: Any, caller: str = "a", most_values: int | None = None) -> Any:
    raw = document if isinstance(document, bytes) else orjson.dumps(document)
    body = await workers.read(Body, raw, caller=caller, bad_status=422, most_values=most_values)
    return await body.value()


async def test_a_body_comes_back_as_it_was_validated(workers: BodyWorkers) -> None:
    names = [f" name {n} " for n in range(10_000)]
    others = [{"n": n, "text": "é" * n} for n in range(2_000)]
    body = await read(workers, {"how": {"deep": [1.5, None]}, "names": names, "others": others, "unknown": 1})
    assert isinstance(body, Body)
    assert body.names == [name.strip() for name in names]
    assert (body.others, body.how) == (others, {"deep": [1.5, None]})
    assert body.model_fields_set == {"how", "names", "others"}


async def test_two_spellings_of_a_document_have_one_digest(workers: BodyWorkers) -> None:
    one, other = b'{"names": ["a"], "how": "b"}', b'{"how":"b","names":["a"]}'
    digests = [
        (await workers.read(Body, raw, caller="a", bad_status=422, most_values=None)).digest for raw in (one, other)
    ]
    assert digests[0] == digests[1] != b""
    assert parse_json(one).canonical == parse_json(other).canonical


async def test_what_decides_how_a_body_is_treated_is_known_before_its_value(workers: BodyWorkers) -> None:
    raw = b'{"how": true, "names": ["a"], "unknown": true}'
    body = await workers.read(Body, raw, caller="a", bad_status=422, most_values=None)
    assert body.document == {"how": True}


async def test_what_is_no_json_is_refused_at_once_and_what_does_not_fit_when_its_value_is_asked_for(
    workers: BodyWorkers,
) -> None:
    with pytest.raises(Problem) as caught:
        await workers.read(Body, b"{", caller="a", bad_status=422, most_values=None)
    assert (caught.value.status, caught.value.code) == (400, "MALFORMED_JSON")
    body = await workers.read(Body, b'{"names": [5, "a", 6]}', caller="a", bad_status=422, most_values=None)
    with pytest.raises(Problem) as caught:
        await body.value()
    assert (caught.value.status, caught.value.code) == (422, "VALIDATION_ERROR")
    assert [(error.path, error.code) for error in caught.value.errors] == [
        ("/names/0", "WRONG_TYPE"), ("/names/2", "WRONG_TYPE"),
    ]  # fmt: skip


async def test_a_value_that_no_field_takes_is_refused_in_the_worker(workers: BodyWorkers) -> None:
    with pytest.raises(Problem) as caught:
        await read(workers, {"how": {"deep": [0] * 100_000}})
    assert (caught.value.status, caught.value.errors[0].code) == (422, "TOO_LONG")


async def test_an_operation_may_take_fewer_values_than_the_largest(workers: BodyWorkers) -> None:
    document = {"names": ["a"] * 60_000}
    assert len((await read(workers, document, most_values=100_000)).names) == 60_000
    with pytest.raises(Problem) as caught:
        await read(workers, document, most_values=50_000)
    assert caught.value.detail == "The body holds too many values."


async def test_a_process_that_dies_costs_one_request(workers: BodyWorkers) -> None:
    with capture_logs() as logged, pytest.raises(Unavailable) as caught:
        await read(workers, {"how": "die"})
    assert caught.value.headers["Retry-After"]
    assert [entry["event"] for entry in logged] == ["body_worker_failed"]
    assert (await read(workers, {"how": "well"})).how == "well"


@pytest.mark.parametrize("begun", [False, True])
async def test_a_process_that_ends_with_the_service_is_no_failure(workers: BodyWorkers, begun: bool) -> None:
    """Also where it was about to begin."""
    if begun:
        await read(workers, {})
    hanging = asyncio.create_task(read(workers, {"how": "hang"}))
    while not workers.busy:
        await asyncio.sleep(0)
    with capture_logs() as logged:
        await workers.stop()
        with pytest.raises(Unavailable):
            await hanging
    assert logged == []


async def test_a_body_that_takes_too_much_memory_is_too_large(workers: BodyWorkers) -> None:
    with pytest.raises(Problem) as caught:
        await read(workers, {"how": "swell"})
    assert (caught.value.status, caught.value.code) == (413, "BODY_TOO_LARGE")
    assert (await read(workers, {"how": "well"})).how == "well"


async def test_a_body_that_takes_too_long_is_given_up(workers: BodyWorkers, clock: VirtualClock) -> None:
    await read(workers, {})
    hanging = asyncio.create_task(read(workers, {"how": "hang"}))
    while workers.idle:
        await asyncio.sleep(0)
    await clock.advance(LIMIT_SECONDS)
    with pytest.raises(Unavailable):
        await hanging
    assert (await read(workers, {"how": "well"})).how == "well"


async def test_a_caller_has_one_body_read_at_a_time_and_others_do_not_wait_for_it(workers: BodyWorkers) -> None:
    hanging = [asyncio.create_task(read(workers, {"how": "hang"}, "hostile")) for _ in range(1 + MOST_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(Unavailable):
        await read(workers, {}, "hostile")
    for n in range(3):
        assert (await read(workers, {"how": "well"}, f"other {n}")).how == "well"
    await workers.stop()
    answers = await asyncio.gather(*hanging, return_exceptions=True)
    assert all(isinstance(answer, Unavailable) for answer in answers)


async def test_a_caller_who_leaves_keeps_the_place_until_the_body_is_read(workers: BodyWorkers) -> None:
    left = asyncio.create_task(read(workers, {"how": "hang"}, "hostile"))
    while not workers.busy:
        await asyncio.sleep(0)
    left.cancel()
    waiting = asyncio.create_task(read(workers, {}, "hostile"))
    assert (await read(workers, {"how": "well"}, "other")).how == "well"
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert workers.busy == 1


async def test_few_values_of_a_caller_are_worked_on_at_once(
    serve: Any, thing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_workers, "VALUES_OF_CALLER", 1)
    monkeypatch.setattr(body_workers, "VALUES_WAITING", 0)
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(_: Call) -> Reply:
        entered.set()
        await leave.wait()
        return Reply(200, {})

    api = await serve(thing("POST", body=Body, handler=slow))
    large = {"names": ["x" * 100] * 1_000}
    first = asyncio.create_task(api.client.post("/things", json=large))
    await entered.wait()
    assert (await api.client.post("/things", json=large)).status == 503
    leave.set()
    assert (await first).status == 200
    assert (await api.client.post("/things", json=large)).status == 200


async def test_processes_are_kept_for_the_next_body_and_end_with_the_service(workers: BodyWorkers) -> None:
    first = (await read(workers, {"how": "process"})).how
    assert (await read(workers, {"how": "process"})).how == first != os.getpid()
    await workers.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    with pytest.raises(Unavailable):
        await read(workers, {})


async def test_no_secret_of_the_environment_reaches_a_worker(
    workers: BodyWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECADO_ADMIN_TOKEN", "hidden")
    environment = (await read(workers, {"how": "environment"})).how
    assert environment.keys() <= {"PYTHONPATH", "LC_CTYPE"}


@pytest.mark.parametrize("name", ["secrets", "orjson", "recado"])
async def test_a_file_where_the_service_runs_is_no_module_of_a_worker(
    workers: BodyWorkers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / f"{name}.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    assert (await read(workers, {"how": "well"})).how == "well"


async def test_why_a_process_cannot_start_is_logged(
    workers: BodyWorkers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "resource.py").write_text("raise ImportError('no such library')")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        with capture_logs() as logged, pytest.raises(Unavailable):
            await read(workers, {"how": "well"})
    assert [(entry["event"], entry["told"]) for entry in logged] == [
        ("body_worker_failed", "ImportError: no such library")
    ]
    assert (await read(workers, {"how": "well"})).how == "well"


async def test_what_a_process_says_of_a_body_is_not_logged(workers: BodyWorkers) -> None:
    with capture_logs() as logged, pytest.raises(Unavailable):
        await read(workers, {"how": "raise"})
    assert [(entry["event"], entry["told"]) for entry in logged] == [("body_worker_failed", "")]


async def test_a_process_that_cannot_start_costs_one_request_and_no_descriptor(
    workers: BodyWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError("no more processes")

    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(body_workers, "Popen", refuse)
        for _ in range(5):
            with pytest.raises(Unavailable):
                await read(workers, {})
    await until(lambda: len(os.listdir("/proc/self/fd")) <= before, "the descriptors are closed")
    assert (workers.busy, workers.idle) == (0, 0)
    await read(workers, {})


async def test_a_process_is_made_ready_some_seconds_after_the_start(clock: VirtualClock) -> None:
    workers = BodyWorkers(clock, expected=[Body])
    await workers.start()
    await clock.advance(READY_AFTER)
    while not workers.idle:
        await asyncio.sleep(0)
    assert workers.busy == 0
    await workers.stop()
    assert workers.idle == 0


def lines(raw: bytes) -> tuple[list[Any], str | None]:
    """What each line holds, as JSON, and where it was read."""
    return [orjson.loads(line) for line in raw.splitlines()], str(os.getpid())


def fails(raw: bytes) -> tuple[list[Any], str | None]:
    raise LookupError(str(raw))


@pytest.mark.parametrize(
    ("raw", "apart"),
    [
        (b"[]\n" * 2_700, False),  # as large as what is never apart
        (b'"' + b"x" * 60_000 + b'"\n', False),
        (b"[]\n" * 3_001, True),
        (b'"' + rb"\\" * 4_100 + b'"\n', True),
        (b'"' + b"x" * 70_000 + b'"\n', True),
    ],
)
async def test_items_are_found_apart_where_that_takes_long(workers: BodyWorkers, raw: bytes, apart: bool) -> None:
    items, place = await workers.find(lines, raw, caller="a")
    assert items == lines(raw)[0]
    assert (place != str(os.getpid())) is apart


async def test_an_item_that_nobody_could_take_over_at_once_is_left_out(workers: BodyWorkers) -> None:
    items, failure = await workers.find(items_of_too_much, b" " * 70_000, caller="a")
    assert (items, failure) == ([1, 2], "malformed: an item holds too many values")


def items_of_too_much(raw: bytes) -> tuple[list[Any], str | None]:
    return [1, {"deep": [[] for _ in range(30_001)]}, 2], None


async def test_a_fault_of_who_finds_items_is_told_and_ends_no_process(workers: BodyWorkers) -> None:
    assert await workers.find(fails, b" " * 70_000, caller="a") == ([], "not read: LookupError")
    assert workers.idle == 1
