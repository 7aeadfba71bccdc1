"""A provider of e-mail behind the bridge's protocol that takes its time, and knows how long. Run as a process.

`GET /times` answers, by message, the seconds from its whole request to its answer.
"""

import argparse
import asyncio
import time

import orjson
import uvloop

from bench.bridge import Bridge, serve

TAKES = 0.02  # seconds, at least: as a provider in the same region

times: dict[str, float] = {}


class TimedBridge(Bridge):
    """One connection, on which one request is under way at a time."""

    def asked(self, path: bytes, body: bytes) -> None:
        if path == b"/times":
            self.write(200, orjson.dumps(times))
            return
        asyncio.get_running_loop().call_later(TAKES, self._take, orjson.loads(body)["id"], time.perf_counter())

    def _take(self, message_id: str, since: float) -> None:
        self.write(200, b'{"providerMessageId":"%s"}' % message_id.encode())
        times[message_id] = time.perf_counter() - since


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port, TimedBridge))
