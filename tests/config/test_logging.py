"""Logging: one stream for structlog and the standard library, redacted, in two forms."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from recado.config.logging import configure_logging, log_loop_errors

PHONE = "+5511987654321"


@pytest.fixture(autouse=True)
def former_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    logging.getLogger("aiohttp.access").disabled = False
    for name in ("asyncio", "asyncpg", "aiobotocore", "botocore"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    structlog.reset_defaults()


def entries(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_entry_is_one_json_object_a_line() -> None:
    stream = io.StringIO()
    configure_logging("info", "json", stream)

    structlog.get_logger("recado.test").info("number connected", number_id="num_1", queued=3)

    [entry] = entries(stream)
    assert entry.pop("timestamp").endswith("Z")
    assert entry == {
        "message": "number connected",
        "level": "info",
        "logger": "recado.test",
        "number_id": "num_1",
        "queued": 3,
    }


def test_the_console_form_is_readable() -> None:
    stream = io.StringIO()
    configure_logging("info", "console", stream)

    structlog.get_logger("recado.test").info("number connected", number_id="num_1")

    assert "number connected" in stream.getvalue()
    assert "number_id=num_1" in stream.getvalue()
    assert "\x1b[" not in stream.getvalue()


@pytest.mark.parametrize("form", ["json", "console"])
def test_both_ways_of_logging_are_redacted(form: str) -> None:
    stream = io.StringIO()
    configure_logging("info", form, stream)

    structlog.get_logger("recado.test").warning(f"to {PHONE}", recipient=PHONE, access_token="hunter2")
    logging.getLogger("somebody.else").warning("to %s with %s", PHONE, "svc_test_abcdefgh")
    try:
        raise ValueError(f"cannot send to {PHONE}")
    except ValueError:
        logging.getLogger("somebody.else").exception("failed")
        structlog.get_logger("recado.test").exception("failed")

    text = stream.getvalue()
    assert "ValueError: cannot send to [phone]" in text
    assert text.count("[phone]") == 5
    assert all(secret not in text for secret in (PHONE, "hunter2", "svc_test_"))


def test_entries_below_the_level_are_dropped() -> None:
    stream = io.StringIO()
    configure_logging("warning", "json", stream)

    structlog.get_logger("recado.test").info("quiet")
    logging.getLogger("somebody.else").info("quiet")
    structlog.get_logger("recado.test").warning("loud")

    assert [entry["message"] for entry in entries(stream)] == ["loud"]


def test_configuring_again_replaces_the_former_stream() -> None:
    first, second = io.StringIO(), io.StringIO()
    logger = structlog.get_logger("recado.test")
    configure_logging("info", "json", first)
    logger.info("to the first")
    configure_logging("info", "json", second)

    logger.info("to the second")

    assert [entry["message"] for entry in entries(first)] == ["to the first"]
    assert [entry["message"] for entry in entries(second)] == ["to the second"]


def test_requests_are_not_logged_one_by_one() -> None:
    stream = io.StringIO()
    configure_logging("debug", "json", stream)

    logging.getLogger("aiohttp.access").info("GET /messages")

    assert stream.getvalue() == ""


async def test_an_error_that_nobody_awaited_is_logged_without_its_values() -> None:
    stream = io.StringIO()
    configure_logging("info", "json", stream)
    loop = asyncio.get_running_loop()
    log_loop_errors(loop)

    loop.call_exception_handler({"message": "Task exception was never retrieved", "exception": ValueError(PHONE)})

    [entry] = entries(stream)
    assert entry["reason"] == "Task exception was never retrieved"
    assert entry["exception"].startswith("ValueError: [phone]")


async def test_a_callback_that_failed_is_logged_without_its_arguments() -> None:
    stream = io.StringIO()
    configure_logging("info", "json", stream)
    loop = asyncio.get_running_loop()
    log_loop_errors(loop)
    called = asyncio.Event()

    def fail(text: str) -> None:
        called.set()
        raise LookupError

    loop.call_soon(fail, "what a customer wrote")
    await called.wait()

    [entry] = entries(stream)
    assert entry["reason"] == "Exception in callback"
    assert "customer" not in stream.getvalue()


@pytest.mark.parametrize("name", ["asyncpg", "botocore.endpoint", "botocore.auth", "aiobotocore.httpsession"])
def test_what_other_programs_say_of_each_request_is_never_logged(name: str) -> None:
    stream = io.StringIO()
    configure_logging("debug", "json", stream)
    logging.getLogger(name).debug("Making request with params: %s", {"body": "the secret of the house"})
    assert stream.getvalue() == ""
    logging.getLogger(name).info("It began")
    assert [entry["message"] for entry in entries(stream)] == ["It began"]
