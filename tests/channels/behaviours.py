"""How a server on a real socket can treat one connection: well, badly, or not at all."""

from collections.abc import Awaitable, Callable
from typing import Any

Behaviour = Callable[[Any], Awaitable[None]]


def says(status: int, body: str | bytes = "", headers: str = "") -> Behaviour:
    async def behave(connection: Any) -> None:
        while True:
            await connection.read_request()
            await connection.answer(status, body.encode() if isinstance(body, str) else body, headers)

    return behave


async def resets_before_reading(connection: Any) -> None:
    connection.reset()


async def resets_after_reading(connection: Any) -> None:
    await connection.read_request()
    connection.reset()


async def closes_after_reading(connection: Any) -> None:
    await connection.read_request()


async def hangs(connection: Any) -> None:
    await connection.read_request()
    await connection.hang()


def breaks_inside(head: str, then_hangs: bool) -> Behaviour:
    async def behave(connection: Any) -> None:
        await connection.read_request()
        connection.writer.write(head.encode())
        await connection.writer.drain()
        if then_hangs:
            await connection.hang()

    return behave
