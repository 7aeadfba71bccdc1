"""The content of an upload is the same from wherever it is read."""

import os
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pytest

from recado.services.media import file_work
from recado.services.media.file_work import FileWork

CONTENT = os.urandom(1_300_000)


@pytest.fixture
async def files() -> AsyncIterator[FileWork]:
    files = FileWork()
    await files.start()
    yield files
    await files.stop()


async def content(files: FileWork, file: object) -> bytes:
    return b"".join([piece async for piece in files.content("org_1", file, len(CONTENT))])  # type: ignore[arg-type]


async def test_it_is_read_from_memory_and_from_a_file(files: FileWork, tmp_path: Path) -> None:
    assert await content(files, BytesIO(CONTENT)) == CONTENT
    with (tmp_path / "file").open("w+b") as file:
        file.write(CONTENT)  # the end of it is not in the file yet
        for _ in range(2):
            assert await content(files, file) == CONTENT


async def test_what_the_system_has_not_in_memory_is_read_by_a_thread(
    files: FileWork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_work, "read_cached", lambda *_: None)
    with (tmp_path / "file").open("w+b") as file:
        file.write(CONTENT)
        assert await content(files, file) == CONTENT
