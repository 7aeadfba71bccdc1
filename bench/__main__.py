"""Runs the benchmarks that are named, or all, one after the other."""

import asyncio
import importlib
import sys

ALL = ("accept", "end_to_end")


async def main(names: list[str]) -> None:
    for name in names:
        module = importlib.import_module(f"bench.{name}")
        for figure in await module.run(print):
            print(figure)


asyncio.run(main(sys.argv[1:] or list(ALL)))
