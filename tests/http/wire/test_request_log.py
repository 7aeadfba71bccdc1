"""The log of requests names what was refused and by which code, never what was sent."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from tests.captured import capture_logs

from recado.config.logging import configure_logging
from recado.config.redaction import REDACTED
from recado.http.api import request_log
from recado.http.api.request_log import REFUSALS_A_SECOND


@pytest.fixture
def debug() -> Iterator[None]:
    logger = logging.getLogger(request_log.__name__)
    logger.setLevel(logging.DEBUG)
    yield
    logger.setLevel(logging.NOTSET)


async def get(api: Any, path: str, **headers: str) -> str:
    async with api.client.get(path, headers=headers) as answer:
        return str(answer.headers["X-Request-Id"])


async def test_a_refusal_is_logged_with_its_code_and_the_request(serve: Any, thing: Any) -> None:
    api = await serve(thing(operation_id="readThings"))
    with capture_logs() as logs:
        await get(api, "/things")
        refused = await get(api, "/things?secret=1", Authorization="Bearer nobody")
        unknown = await get(api, "/nothing/+5511987654321")
    entries = [entry for entry in logs if entry["event"].startswith("request_")]
    assert [(entry["operation"], entry["status"], entry["code"], entry["request_id"]) for entry in entries] == [
        ("readThings", 401, "UNAUTHORIZED", refused),
        (None, 404, "ROUTE_NOT_FOUND", unknown),
    ]
    assert {entry["log_level"] for entry in entries} == {"info"}
    assert not any(each in str(logs) for each in ("secret", "nobody", "5511987654321"))


async def test_a_path_that_no_route_has_is_logged_by_the_route_that_is_most_like_it(serve: Any, thing: Any) -> None:
    api = await serve(thing(operation_id="readThings"))
    with capture_logs() as logs:
        for method, path in (
            ("GET", "/thinks"),
            ("DELETE", "/things"),
            ("POST", "/+5511987654321"),
            ("PROPFIND", "/thinks"),
        ):
            async with api.client.request(method, path) as answer:
                assert answer.status in (404, 405)
    entries = [(entry["method"], entry["nearest_route"]) for entry in logs if entry["event"] == "request_refused"]
    assert entries == [("GET", "/things"), ("DELETE", "/things"), ("POST", None), ("other", "/things")]


@pytest.mark.usefixtures("debug")
async def test_at_level_debug_every_answer_is_logged(serve: Any, thing: Any) -> None:
    api = await serve(thing(operation_id="readThings"))
    with capture_logs() as logs:
        asked = await get(api, "/things")
    (entry,) = [entry for entry in logs if entry["event"] == "request_answered"]
    assert (entry["operation"], entry["status"], entry["request_id"], entry["log_level"]) == (
        "readThings", 200, asked, "debug",
    )  # fmt: skip
    assert (entry["organization_id"], entry["actor_id"]) == ("org_1", "key_1")


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What goes to the log's stream, through all of its processors."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logging("debug", "json", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    logging.getLogger("aiohttp.access").disabled = False
    for name in ("asyncio", "asyncpg"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    structlog.reset_defaults()


async def test_a_refusal_says_in_the_log_whose_key_it_was(written: io.StringIO, serve: Any, thing: Any) -> None:
    api = await serve(thing())
    await get(api, "/things", Prefer="handling=strict")
    await get(api, "/things?other=1", Prefer="handling=strict")
    entries = [json.loads(line) for line in written.getvalue().splitlines()]
    shown = [{name: str(value) for name, value in each.items()} for each in entries if "code" in each]
    assert [(each["message"], each["actor_id"], each["organization_id"]) for each in shown] == [
        ("request_refused", "key_1", "org_1")
    ]
    assert not any(REDACTED in each.values() for each in shown)


async def test_a_storm_of_refusals_is_counted_and_not_written(serve: Any, thing: Any) -> None:
    api = await serve(thing())
    with capture_logs() as logs:
        for _ in range(REFUSALS_A_SECOND + 7):
            await get(api, "/nothing")
        await api.clock.advance(1.0)
        await get(api, "/nothing")
    events = [entry["event"] for entry in logs]
    assert events.count("request_refused") == REFUSALS_A_SECOND + 1
    assert [entry["count"] for entry in logs if entry["event"] == "refusals_left_out"] == [7]
