"""Pages of rows that may be wide, read in parts, each bounded in bytes (C31): what comes at once is in memory at once.

A part may end before its page does. Whoever wants the rest asks again, from the last row on.
"""

from collections.abc import Sequence
from typing import Any, Final

from recado.storage.core.statements.sql import load

SQL = load("wide_rows")

READ_BYTES: Final = 2**19
"""Of stored content in a part. Packed content counts as what it may become: a part is 1.5 MiB then, at worst."""


def bounded(page: str, wide: Sequence[str], order: str) -> str:
    """The query `page`, ended early. `wide`: columns that may hold much; `order`: as the page is ordered, by `p.…`."""
    width = "\n            + ".join(SQL.width.replace("{column}", column) for column in wide)
    text = SQL.bounded.replace("{bytes}", width).replace("{order}", order).replace("{most}", str(READ_BYTES))
    return text.replace("{page}", page)


def rows_of(page: Sequence[Any]) -> int:
    """How many rows the whole page has, of which these are the first."""
    return page[0]["page_rows"] if page else 0
