"""Structured logging: structlog and the standard library write one redacted stream, as JSON or for people."""

import asyncio
import logging
import sys
from typing import Any, TextIO

import orjson
import structlog

from recado.config.redaction import redact_entry, render_error


def configure_logging(level: str, form: str, stream: TextIO | None = None) -> None:
    """Write every log entry of at least `level` (`debug`, `info`, …) in the form `console` or `json`.

    `stream` is standard error by default. May be called again; the last call holds.
    """
    threshold = logging.getLevelNamesMapping()[level.upper()]
    output = sys.stderr if stream is None else stream
    enrich: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.processors.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.ExceptionRenderer(render_error),
    ]
    render: list[Any] = (
        [structlog.processors.EventRenamer("message"), structlog.processors.JSONRenderer(serializer=_json)]
        if form == "json"
        else [structlog.dev.ConsoleRenderer(colors=output.isatty())]
    )
    handler = logging.StreamHandler(output)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=enrich,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, redact_entry, *render],
        )
    )
    root = logging.getLogger()
    for former in root.handlers[:]:
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(threshold)
    logging.captureWarnings(True)
    # One entry per request would cost more than the request.
    logging.getLogger("aiohttp.access").disabled = True
    # Their own debug entries name every query, every poll of a file descriptor, and what a request holds.
    for chatty in ("asyncio", "asyncpg", "aiobotocore", "botocore"):
        logging.getLogger(chatty).setLevel(max(threshold, logging.INFO))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *enrich,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.stdlib.LoggerFactory(),
        # Loggers are made at import, before the settings are read.
        cache_logger_on_first_use=False,
    )


def log_loop_errors(loop: asyncio.AbstractEventLoop) -> None:
    """Log errors that nobody awaited; the loop's own handler would quote exceptions and tasks with their values."""
    log = structlog.get_logger(__name__)

    def handle(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # The message of a failed callback quotes the callback with its arguments.
        reason = "Exception in callback" if "handle" in context else context.get("message")
        log.error("unhandled error in the event loop", reason=reason, exc_info=context.get("exception"))

    loop.set_exception_handler(handle)


def _json(entry: Any, **_options: Any) -> str:
    return orjson.dumps(entry, default=str).decode("utf-8")
