"""The example of docs/actors.md runs as printed."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "actors.md"


async def test_the_example_of_the_page_runs():
    example = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    names: dict[str, object] = {}
    exec(compile(example.group(1), str(PAGE), "exec"), names)
    await names["main"]()
