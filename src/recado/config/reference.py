"""The table of settings in docs/configuration.md, written from the settings themselves.

`python -m recado.config.reference docs/configuration.md` writes it again between its two marks.
"""

import sys
from pathlib import Path

from recado.config.limits import DEFAULT_LIMITS
from recado.config.settings import PREFIX, Settings

SETTINGS_MARKS = ("<!-- settings: written by `make docs` -->", "<!-- end of settings -->")
LIMITS_MARKS = ("<!-- limits: written by `make docs` -->", "<!-- end of limits -->")


def settings_table() -> str:
    """Return the Markdown table of every setting: name, default, meaning and form."""
    rows = ["| Variable | Default | Meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        extra = field.json_schema_extra
        assert isinstance(extra, dict)  # noqa: S101 - every setting declares its form
        rows.append(f"| `{PREFIX}{name.upper()}` | {extra['default']} | {field.description} Form: {extra['form']}. |")
    return "\n".join(rows)


def limits_table() -> str:
    """Return the Markdown table of the default request limits."""
    rows = ["| Class | Refill a second | Capacity |", "|---|---|---|"]
    rows += [f"| `{name}` | {limit.refill:,.4g} | {limit.capacity:,} |" for name, limit in DEFAULT_LIMITS.items()]
    return "\n".join(rows)


def with_tables(text: str) -> str:
    """Return the document with both tables replaced; raises ValueError when a mark is missing."""
    for (start, end), table in ((SETTINGS_MARKS, settings_table()), (LIMITS_MARKS, limits_table())):
        before, _, rest = text.partition(start)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"the document does not hold the marks {start} and {end}")
        text = f"{before}{start}\n{table}\n{end}{after}"
    return text


def main(path: Path) -> None:
    """Write the tables of the document at `path` again."""
    path.write_text(with_tables(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
