"""The service runs on uvloop, whose transports are of none of asyncio's classes: whoever asks for these misses each."""

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "recado"
ASKS = re.compile(r"isinstance\([^()]*\basyncio\.\w*Transport\b")


def test_nobody_asks_for_the_class_of_a_transport() -> None:
    files = {file: file.read_text("utf-8") for file in SOURCE.rglob("*.py")}
    assert [str(file.relative_to(SOURCE)) for file, text in files.items() if ASKS.search(text)] == []
    assert ASKS.search("if isinstance(transport, asyncio.WriteTransport):")
