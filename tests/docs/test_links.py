"""Every relative link of the pages leads somewhere, and what a link names is defined there."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
LINK = re.compile(r"\[([^\]\n]+)\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def links() -> Iterator[tuple[Path, str, Path, str]]:
    """Page, text, file and fragment of each relative link outside of code blocks."""
    for page in PAGES:
        prose = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for text, target in LINK.findall(prose):
            if not re.match(r"[a-z]+:", target):
                path, _, fragment = target.partition("#")
                yield page, text, (page.parent / path).resolve() if path else page, fragment


def anchors(page: Path) -> set[str]:
    """The explicit anchors of a page, and those that its headings get."""
    text = page.read_text("utf-8")
    headings = (re.sub(r"<[^>]*>", "", heading) for heading in HEADING.findall(text))
    slugs = {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


def is_defined(name: str, file: Path) -> bool:
    text = file.read_text("utf-8")
    if file.suffix == ".sql":
        return f"-- name: {name}\n" in text
    return re.search(rf"^\s*(?:async def|def|class) {re.escape(name)}\b", text, re.MULTILINE) is not None


def test_there_are_pages_with_links() -> None:
    assert len(PAGES) > 10
    assert len([*links()]) > 100


def test_every_link_leads_somewhere() -> None:
    assert [f"{page.name}: {file}" for page, _, file, _ in links() if not file.exists()] == []


def test_every_fragment_is_an_anchor_of_its_page() -> None:
    missing = [
        f"{page.name}: {file.name}#{fragment}"
        for page, _, file, fragment in links()
        if fragment and file.suffix == ".md" and fragment not in anchors(file)
    ]
    assert missing == []


def test_what_a_link_names_is_defined_in_its_file() -> None:
    named = [
        (page, file, name)
        for page, text, file, _ in links()
        for label, _, name in [text.partition(": ")]
        if name and label == file.name
    ]
    assert len(named) > 30
    assert [f"{page.name}: {name} in {file.name}" for page, file, name in named if not is_defined(name, file)] == []
