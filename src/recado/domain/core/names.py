"""Names that are unique in their environment: compared without regard to case and repeated spaces (C7.2.1)."""

from unicodedata import normalize


def name_key(name: str) -> str:
    """The form in which names are compared; two spellings of one name have the same."""
    return " ".join(normalize("NFC", normalize("NFC", name).casefold()).split())
