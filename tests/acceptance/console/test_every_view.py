"""That the tests in the browser look at every view of the console: none is in `VIEWS` alone."""

import re
from collections import defaultdict
from importlib.resources import files
from pathlib import Path

from tests.acceptance.console import test_console, test_views
from tests.acceptance.console.conftest import Shown

CONSOLE = Path(str(files("recado.http") / "console"))
SHOWN = Shown("url", "email", "password", "token", "number", "message", "inbound", "webhook", "delivery")


def _paths() -> dict[str, re.Pattern[str]]:
    """The addresses of each view of `VIEWS`, by its name."""
    table = (CONSOLE / "views.js").read_text("utf-8").partition("export const VIEWS = [")[2].partition("];")[0]
    found = {}
    for name in re.findall(r"^  (?:\{ \.\.\.)?(\w+)", table, re.MULTILINE):
        source = (CONSOLE / "views" / f"{name}.js").read_text("utf-8")
        path = re.search(r'^export const path = "([^"]+)";', source, re.MULTILINE)
        assert path, name
        found[name] = re.compile(re.sub(r":\w+", "[^/]+", path[1]))
    return found


def test_each_view_is_looked_at_in_the_browser_and_each_address_is_of_one_view() -> None:
    places = [place for place, _ in (*test_console.views(SHOWN), *test_views.views(defaultdict(lambda: "one")))]
    paths = _paths()
    assert len(paths) > 20
    seen = set()
    for place in places:
        address = place.partition("?")[0]
        (view,) = (name for name, path in paths.items() if path.fullmatch(address))
        seen.add(view)
    assert set(paths) - seen == set()
