"""Calls of commands to a running service: its address, the key of the caller, and what is said of a refusal."""

import os
import re
from typing import Annotated, Any, Final

import aiohttp
import orjson
import typer

from recado.cli.errors import CommandError
from recado.cli.unreachable import unreachable

Url = Annotated[str, typer.Option("--url", metavar="URL", help="Address of the API.")]
USUAL_URL = "http://127.0.0.1:8080"
KeyFrom = Annotated[
    str, typer.Option("--key-from", metavar="VARIABLE", help="The environment variable that holds the API key.")
]
USUAL_KEY = "RECADO_API_KEY"


NO_ANSWER: Final = (aiohttp.ClientError, TimeoutError, ValueError, OSError)
"""What a call raises where nothing answers as Recado does."""


class CallRefused(CommandError):
    """The service refused the call. `retry_after`: seconds after which it may take it, None where it did not say."""

    def __init__(self, status: int, problem: Any, retry_after: str | None) -> None:
        self.status = status
        self.code = str(problem.get("code", ""))
        self.retry_after = float(retry_after) if retry_after is not None and retry_after.isdigit() else None
        super().__init__(f"refused with {status} {self.code}: {_reason(problem)}")


def address_of(url: str) -> str:
    """The address without a slash at its end; CommandError for what is none."""
    if not re.match(r"https?://[^/]", url):
        raise CommandError(f"{url!r} is no address of an API: give one such as {USUAL_URL}")
    return url.rstrip("/")


def key_in(variable: str) -> str:
    """The key that the environment variable holds."""
    key = os.environ.get(variable, "")
    if not key:
        raise CommandError(f"there is no API key in {variable}: set it, or name another variable with --key-from")
    return key


def caller(key: str) -> aiohttp.ClientSession:
    """The session of a caller with this key; whoever makes it closes it."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=120)
    return aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}, timeout=timeout)


async def called(session: aiohttp.ClientSession, method: str, url: str, **how: Any) -> Any:
    """The JSON of an answer. Raises `CallRefused`, and CommandError where nothing answers as Recado does."""
    try:
        async with session.request(method, url, **how) as answer:
            await accept(answer)
            return orjson.loads(await answer.read())
    except NO_ANSWER as error:
        raise unreachable(url, error) from error


async def accept(answer: aiohttp.ClientResponse) -> None:
    """Raise `CallRefused` where the answer is a refusal, and one of NO_ANSWER where it is none of Recado's."""
    if answer.status >= 400:
        problem = orjson.loads(await answer.read())
        raise CallRefused(
            answer.status, problem if isinstance(problem, dict) else {}, answer.headers.get("Retry-After")
        )


def _reason(problem: Any) -> str:
    errors = [f"{error['path']} {error['message']}" for error in problem.get("errors", ())]
    return "; ".join(errors) or str(problem.get("detail", "no reason given"))
