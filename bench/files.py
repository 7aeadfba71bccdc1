"""The bound of downloads, as a process: a bare aiohttp application that gives one file to everybody."""

import argparse
from pathlib import Path

import uvloop
from aiohttp import web


async def ready(_: web.Request) -> web.Response:
    return web.Response()


def main() -> None:
    options = argparse.ArgumentParser("python -m bench.files")
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--file", type=Path, required=True)
    given = options.parse_args()

    async def give(_: web.Request) -> web.FileResponse:
        return web.FileResponse(given.file)

    application = web.Application()
    application.router.add_get("/file", give)
    application.router.add_get("/", ready)
    loop = uvloop.new_event_loop()
    web.run_app(application, host="127.0.0.1", port=given.port, access_log=None, print=None, loop=loop)


if __name__ == "__main__":
    main()
