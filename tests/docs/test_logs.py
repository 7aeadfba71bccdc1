"""Every entry that the program logs stands in a page, with what it means."""

from pathlib import Path

from tests.docs.log_entries import logged_entries

PAGES = Path(__file__).parents[2] / "docs"
LOG_WHAT_IS_GIVEN = {
    "channels/sms/smpp/smpp.py",
    "entry/server.py",
    "http/server.py",
    "services/links/recorder.py",
}


def test_every_entry_stands_in_a_page() -> None:
    pages = "".join(page.read_text("utf-8") for page in PAGES.glob("*.md"))
    entries, unnamed = logged_entries()
    assert {"owner_begun", "smpp_message_dropped", "http_request_failed", "clicks_dropped", "… failed to stop"} <= {
        *entries
    }
    assert unnamed == LOG_WHAT_IS_GIVEN  # else an entry has a name that is not seen here
    missing = [f"{name} ({where})" for name, where in sorted(entries.items()) if f"`{name}`" not in pages]
    assert not missing, "in no page of docs: " + ", ".join(missing)
