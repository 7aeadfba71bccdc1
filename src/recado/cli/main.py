"""The entry of the `recado` command and of `python -m recado` (C35).

It imports nothing but the interpreter's own until it has begun: Ctrl-C while the rest is imported ends quietly, too.
"""

import sys

INTERRUPTED = 130  # exit status, as shells have it


def run() -> None:
    """Run the command that the arguments name, and end with its exit status."""
    try:
        from recado.cli.program import main

        status = main(sys.argv[1:])
    except KeyboardInterrupt:
        status = INTERRUPTED
    sys.exit(status)
