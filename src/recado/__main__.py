"""`python -m recado`, the same as the `recado` command."""

from recado.cli.main import run

if __name__ == "__main__":
    run()
