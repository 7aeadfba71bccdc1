"""A bar on standard error, for people only: who reads errors from a file or a pipe finds nothing else there (C35)."""

from rich.console import Console
from rich.progress import Progress, ProgressColumn


def progress_bar(*columns: ProgressColumn) -> Progress:
    """A bar of these columns, which is gone when its block is over."""
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
