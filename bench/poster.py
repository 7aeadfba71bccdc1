"""The bound of webhooks: an aiohttp client that signs and posts the same bodies, and keeps no record. Run as a process.

Prints how many posts a second were answered.
"""

import argparse
import asyncio
import hashlib
import hmac
import time
from collections.abc import Iterator

import aiohttp
import uvloop

BODY = (
    b'{"id":"evt_0VbYuH8diOQ8YyN1ATFV3","type":"message.read","env":"test","organizationId":"org_0VbYuH8diOQ8YyN1ATFV3",'
    b'"createdAt":"2026-11-20T12:00:00.000Z","apiVersion":"2","data":{"id":"msg_0VbYuH8diOQ8YyN1ATFV3",'
    b'"channel":"chatapp","direction":"outbound","type":"template","status":"read","to":"+5511*****9003",'
    b'"numberId":"num_0VbYuH8diOQ8YyN1ATFV3","templateId":"tpl_0VbYuH8diOQ8YyN1ATFV3","metadata":{"order":"A1"},'
    b'"createdAt":"2026-11-20T12:00:00.000Z","sentAt":"2026-11-20T12:00:00.000Z",'
    b'"deliveredAt":"2026-11-20T12:00:00.000Z","readAt":"2026-11-20T12:00:00.000Z"}}'
)
KEY = b"k" * 32


async def post_all(url: str, count: int, at_once: int) -> float:
    """Posts a second."""
    connector = aiohttp.TCPConnector(limit=at_once)
    async with aiohttp.ClientSession(connector=connector, headers={"Content-Type": "application/json"}) as session:

        async def poster(numbers: Iterator[int]) -> None:
            for number in numbers:
                signature = hmac.new(KEY, b"%d." % number + BODY, hashlib.sha256).hexdigest()
                headers = {"X-SVC-Signature": f"t={number},v1={signature}"}
                async with session.post(url, data=BODY, headers=headers) as answer:
                    await answer.read()

        numbers = iter(range(count))
        began = time.perf_counter()
        await asyncio.gather(*(poster(numbers) for _ in range(at_once)))
        return count / (time.perf_counter() - began)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--at-once", type=int, required=True)
    given = parser.parse_args()
    print(uvloop.run(post_all(given.url, given.count, given.at_once)))
