"""A machine's clock that a test sets under a running program, by a preloaded library and a file that says how far."""

import struct
import subprocess
import sys
from pathlib import Path

from tests.program import Service

SOURCE = Path(__file__).with_name("clock_shim.c")


class ClockShim:
    """Made in a folder; `environment` is that of the programs whose clock it is."""

    def __init__(self, folder: Path) -> None:
        library = folder / "clock_shim.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
        self._file = folder / "clock_ahead"
        self._file.write_bytes(struct.pack("l", 0))
        self._environment = {"LD_PRELOAD": str(library), "CLOCK_SHIM": str(self._file)}

    def set_ahead(self, seconds: float) -> None:
        """From now on the clock shows so many seconds more than the machine's; less than none: behind it."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("l", round(seconds * 1_000_000_000)))

    def service(self, folder: Path, *options: str, durable: bool = False, **settings: str) -> Service:
        """One that has this clock: in an interpreter of its own, and nobody else in the test's process has it."""
        made = Service(folder, *options, durable=durable, **settings)
        given = (f"{name}={value}" for name, value in self._environment.items())
        made.starts_with = ("env", *given, sys.executable, "-m", "recado")  # type: ignore[misc]
        return made
