"""Which build of Python runs: one that was optimised (PGO, LTO) does the same work in 11 to 19 % less processor time.

`tools/find-python` has each interpreter that it finds run this file: it imports nothing but the interpreter's own.
"""

import platform
import sys
import sysconfig
from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple

OLDEST: Final = (3, 11)
NEWEST: Final = (3, 14)
"""For later versions, what constraints.txt pins is not built."""

_FLAGS: Final = ("PY_CFLAGS", "PY_CFLAGS_NODIST", "PY_LDFLAGS", "PY_LDFLAGS_NODIST")
_DEBIANS: Final = "deb_system"
"""A scheme of installation that Debian adds: it builds with PGO and LTO, and takes the flags of both off the record."""


class Build(NamedTuple):
    """How an interpreter was built. `pgo`: optimised by profile; `lto`: by the linker."""

    version: str
    pgo: bool
    lto: bool

    @property
    def optimised(self) -> bool:
        """Whether it is as fast as can be."""
        return self.pgo and self.lto

    def __str__(self) -> str:
        done = [name for name, is_so in (("PGO", self.pgo), ("LTO", self.lto)) if is_so]
        return f"{self.version} ({' and '.join(done) or 'without PGO and LTO'})"


def build_of(version: str, variables: Mapping[str, Any], schemes: Collection[str]) -> Build:
    """Tell a build by what `sysconfig` records of it."""
    arguments = str(variables.get("CONFIG_ARGS"))
    flags = " ".join(str(variables.get(name)) for name in _FLAGS)
    debians = _DEBIANS in schemes
    return Build(
        version,
        pgo=debians or "--enable-optimizations" in arguments or "-fprofile-use" in flags,
        lto=debians or "--with-lto" in arguments or "-flto" in flags,
    )


def this_build() -> Build:
    """The build of the interpreter that runs."""
    return build_of(platform.python_version(), sysconfig.get_config_vars(), sysconfig.get_scheme_names())


def main() -> int:
    """Print how many of the two optimisations there are, and the interpreter's path, outside of an environment.

    Exit status 3 for a version that is not supported, 4 when it cannot make virtual environments.
    """
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        return 3
    try:
        import_module("ensurepip")
        import_module("venv")
    except ImportError:
        return 4
    build = this_build()
    sys.stdout.write(f"{build.pgo + build.lto} {getattr(sys, '_base_executable', sys.executable)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
