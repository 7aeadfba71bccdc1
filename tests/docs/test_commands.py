"""The commands of the pages reach the service where the reader has it: `$URL`, as the tour sets it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
# They start a service of their own, where they say.
OF_THEIR_OWN = {"demonstration.md", "email-demonstration.md", "sms-demonstration.md"}
USUAL = "http://127.0.0.1:8080"


def commands(page: Path) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines()]


def test_a_command_names_the_address_of_the_service_only_where_nothing_else_is_said() -> None:
    lines = [(page.name, line) for page in PAGES if page.name not in OF_THEIR_OWN for line in commands(page)]
    assert sum("$URL" in line for _, line in lines) > 30
    assert [
        (page, line) for page, line in lines if "localhost:" in line or USUAL in line.replace(f"${{URL:-{USUAL}}}", "")
    ] == []


def test_an_address_in_single_quotes_would_stay_a_name() -> None:
    assert [
        (page.name, line) for page in PAGES for line in commands(page) if re.search(r"(^|\s)'[^']*\$URL", line)
    ] == []
