"""The API as the load test prepares and inspects it: JSON requests, one at a time, patient with request limits."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp

from recado.loadtest.errors import ApiUnreachable, LoadTestError

PAGE = 200


class Api:
    """One caller of an installation's API; an asynchronous context."""

    def __init__(self, base_url: str, token: str) -> None:
        self._base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Api":
        self._session = aiohttp.ClientSession(headers=self._headers, timeout=aiohttp.ClientTimeout(total=60))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None) -> Any:
        """Return the answer's JSON. Waits where the API asks for it; any other refusal is a LoadTestError."""
        assert self._session is not None  # noqa: S101 - used inside its context
        while True:
            try:
                async with self._session.request(method, self._base_url + path, params=query, json=body) as answer:
                    if answer.status in (429, 503) and "Retry-After" in answer.headers:
                        await asyncio.sleep(float(answer.headers["Retry-After"]))
                        continue
                    if answer.status >= 400:
                        problem = await answer.json(content_type=None)
                        detail = problem.get("detail") or problem.get("title") or "no reason given"
                        raise LoadTestError(f"{method} {path} answered {answer.status}: {detail}")
                    return await answer.json(content_type=None) if answer.status != 204 else None
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                raise ApiUnreachable(self._base_url, error) from None

    async def items(self, path: str, query: Mapping[str, str]) -> list[Any]:
        """Return every item of a limit/skip list."""
        found: list[Any] = []
        while True:
            page = await self.call("GET", path, query={**query, "limit": str(PAGE), "skip": str(len(found))})
            found += page["items"]
            if len(page["items"]) < PAGE:
                return found

    async def messages(self, query: Mapping[str, str]) -> AsyncIterator[Any]:
        """Give every message of a filter, newest first, page by page along the cursor."""
        cursor: dict[str, str] = {}
        while True:
            page = await self.call("GET", "/messages", query={**query, "limit": str(PAGE), **cursor})
            for item in page["items"]:
                yield item
            if not page.get("nextCursor"):
                return
            cursor = {"cursor": page["nextCursor"]}
