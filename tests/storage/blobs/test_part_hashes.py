"""The hashes of parts, whatever pieces they came in."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from recado.storage.blobs.part_hashes import PartHashes

PIECES = st.lists(st.binary(max_size=40), max_size=12)


@given(pieces=PIECES, size=st.integers(1, 50))
def test_the_whole_and_each_part_are_hashed_however_they_come(pieces: list[bytes], size: int) -> None:
    hashes, content = PartHashes(size), b"".join(pieces)
    for piece in pieces:
        hashes.update(memoryview(piece))
    assert hashes.digest() == sha256(content).digest()
    parts = [content[at : at + size] for at in range(0, len(content), size)]
    assert hashes.parts() == tuple(sha256(part).hexdigest() for part in parts)


def test_where_nobody_asks_for_parts_there_are_none() -> None:
    hashes = PartHashes(None)
    hashes.update(b"content")
    assert (hashes.digest(), hashes.parts()) == (sha256(b"content").digest(), ())
