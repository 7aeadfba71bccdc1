"""The keys of an installation (C33)."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recado.config.errors import SettingsError
from recado.config.secrets import load_keys
from recado.config.settings import Settings, load_settings

KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="  # 32 bytes


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(data_dir=tmp_path / "data")


def test_missing_keys_are_made_once_and_kept_for_their_owner_only(settings: Settings) -> None:
    first = load_keys(settings)

    assert load_keys(settings) == first
    assert first.encryption.startswith("k1:")
    assert len(first.cursor) == len(first.index) == 32
    assert first.cursor != first.index
    assert stat.S_IMODE((settings.data_dir / "keys.json").stat().st_mode) == 0o600
    assert [path.name for path in settings.data_dir.iterdir()] == ["keys.json"]


def test_each_installation_has_keys_of_its_own(settings: Settings, tmp_path: Path) -> None:
    other = load_settings(data_dir=tmp_path / "other")

    assert load_keys(settings).cursor != load_keys(other).cursor


def test_processes_that_start_at_once_agree_on_the_keys(settings: Settings) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(load_keys, [settings] * 32))

    assert len({(each.encryption, each.index, each.cursor) for each in keys}) == 1


def test_a_key_file_of_an_earlier_release_gets_what_it_lacks_once(settings: Settings) -> None:
    path = settings.data_dir / "keys.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"encryption_keys": f"k1:{KEY}", "cursor_key": KEY}))

    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(load_keys, [settings] * 32))

    assert len({each.index for each in keys}) == 1
    assert keys[0].encryption == f"k1:{KEY}"
    assert load_keys(settings) == keys[0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in settings.data_dir.iterdir()] == ["keys.json"]


def test_the_addresses_in_emails_are_signed_by_the_index_key_until_they_have_one_of_their_own(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = load_keys(settings)
    assert kept.links == (kept.index,)
    monkeypatch.setenv("RECADO_LINK_KEY", KEY)
    own = load_keys(load_settings(data_dir=settings.data_dir))
    assert own.links == (b"0123456789abcdef0123456789abcdef", kept.index)


def test_a_key_of_the_settings_is_used_and_only_the_others_are_kept(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = load_keys(settings)
    monkeypatch.setenv("RECADO_CURSOR_KEY", KEY)

    keys = load_keys(load_settings(data_dir=settings.data_dir))

    assert keys.cursor == b"0123456789abcdef0123456789abcdef"
    assert keys.encryption == kept.encryption


def test_with_every_key_set_no_file_is_made(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECADO_CURSOR_KEY", KEY)
    monkeypatch.setenv("RECADO_INDEX_KEY", KEY)
    monkeypatch.setenv("RECADO_ENCRYPTION_KEYS", f"a:{KEY},b:{KEY}")

    keys = load_keys(load_settings(data_dir=settings.data_dir))

    assert keys.encryption == f"a:{KEY},b:{KEY}"
    assert not settings.data_dir.exists()


def test_an_external_database_wants_every_key_set(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECADO_DATABASE_URL", "postgresql://db/recado")

    with pytest.raises(SettingsError) as refusal:
        load_keys(load_settings(data_dir=settings.data_dir))

    assert [line.split(":")[0] for line in refusal.value.lines] == [
        "RECADO_ENCRYPTION_KEYS is missing",
        "RECADO_INDEX_KEY is missing",
        "RECADO_CURSOR_KEY is missing",
    ]
    assert not settings.data_dir.exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", json.dumps({"encryption_keys": "k1:AAAA", "cursor_key": KEY})])
def test_a_damaged_key_file_is_named_and_left_alone(settings: Settings, content: str) -> None:
    path = settings.data_dir / "keys.json"
    path.parent.mkdir()
    path.write_text(content)

    with pytest.raises(SettingsError, match="is damaged: restore it from a backup"):
        load_keys(settings)

    assert path.read_text() == content


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(SettingsError, match="cannot be used"):
        load_keys(load_settings(data_dir=tmp_path / "file" / "data"))


def test_keys_are_not_shown(settings: Settings) -> None:
    assert repr(load_keys(settings)) == "Keys()"
