"""The keys of a terminal, read one by one while a block runs; the terminal is as before when it ends."""

import asyncio
import codecs
import contextlib
import os
import re
import termios
import tty
from collections.abc import Callable, Iterator
from typing import Final

_READ: Final = 1_024  # bytes
_KEY: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|.", re.DOTALL)
_BEGUN: Final = re.compile(r"\x1b(\[[0-9;]*|O)\Z")  # a sequence whose end is still to come
_NAMES: Final = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down",
    "\x1b[5~": "page_up", "\x1b[6~": "page_down",
    "\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home", "\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end",
    "\r": "enter", "\n": "enter", "\x1b": "escape", "\x7f": "backspace", "\b": "backspace",
}  # fmt: skip


class KeyReader:
    """Names of keys from what a terminal sends. A sequence that is not known is no key."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
        self._begun = ""

    def feed(self, sent: bytes) -> Iterator[str]:
        text = self._begun + self._decoder.decode(sent)
        begun = _BEGUN.search(text)
        self._begun = "" if begun is None else begun[0]
        for key in _KEY.findall(text[: len(text) - len(self._begun)]):
            name = _NAMES.get(key, key)
            if len(name) > 1 and name.startswith("\x1b"):
                continue
            yield name


@contextlib.contextmanager
def keys_of(descriptor: int, pressed: Callable[[str], None], closed: Callable[[], None]) -> Iterator[None]:
    """Call `pressed` with each key while the block runs, and `closed` once when the terminal is gone.

    Ctrl-C is a signal as ever. Ctrl-Z does nothing: it would leave the screen as it is to the shell.
    """
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    now = termios.tcgetattr(descriptor)
    now[6][termios.VSUSP] = os.fpathconf(descriptor, "PC_VDISABLE").to_bytes(1, "big")
    termios.tcsetattr(descriptor, termios.TCSADRAIN, now)
    loop, reader = asyncio.get_running_loop(), KeyReader()

    def read() -> None:
        try:
            sent = os.read(descriptor, _READ)
        except OSError:
            sent = b""
        if not sent:
            loop.remove_reader(descriptor)
            closed()
        for key in reader.feed(sent):
            pressed(key)

    loop.add_reader(descriptor, read)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
