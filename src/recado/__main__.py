"""`python -m recado`, the same as the `recado` command: what lies in the folder where it is called is no part of it."""

import os
import sys


def _leave_out_the_folder() -> None:
    """The interpreter looks for modules there first, and would take a `json.py` of the caller's for its own."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        folder = os.getcwd()
    except FileNotFoundError:
        return  # it is gone, and not looked at
    if not sys.flags.safe_path and sys.path[0] == folder != home:
        del sys.path[0]


if __name__ == "__main__":
    _leave_out_the_folder()

    from recado.cli.main import run

    run()
