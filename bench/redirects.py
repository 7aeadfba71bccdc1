"""The bound of clicks, as a process: a bare aiohttp application that leads everybody on, and counts nobody."""

import argparse

import uvloop
from aiohttp import web

LOCATION = "https://shop.example.com/orders?id=1"


async def lead(_: web.Request) -> web.Response:
    return web.Response(status=302, headers={"Location": LOCATION})


async def ready(_: web.Request) -> web.Response:
    return web.Response()


def main() -> None:
    options = argparse.ArgumentParser("python -m bench.redirects")
    options.add_argument("--port", type=int, required=True)
    application = web.Application()
    application.router.add_get("/l/{code}", lead)
    application.router.add_get("/", ready)
    loop = uvloop.new_event_loop()
    web.run_app(application, host="127.0.0.1", port=options.parse_args().port, access_log=None, print=None, loop=loop)


if __name__ == "__main__":
    main()
