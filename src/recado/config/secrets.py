"""The keys of an installation: taken from the settings, or made once and kept beside the embedded database (C33)."""

import base64
import fcntl
import json
import os
import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from recado.config.errors import SettingsError
from recado.config.forms import KEY_BYTES, decode_key, parse_key_list
from recado.config.settings import PREFIX, Settings

KEY_FILE = "keys.json"
_NAMES = ("encryption_keys", "index_key", "cursor_key")


@dataclass(frozen=True, slots=True)
class Keys:
    """`encryption` is a list `kid:base64,…`, the first of which encrypts; `index` makes the blind indexes of documents;
    `cursor` signs page cursors; of `links` the first signs the addresses in e-mails, and each reads them.
    """

    encryption: str = field(repr=False)
    index: bytes = field(repr=False)
    cursor: bytes = field(repr=False)
    links: tuple[bytes, ...] = field(repr=False)


def load_keys(settings: Settings) -> Keys:
    """Return the keys; with the embedded database missing ones are made and kept, readable by their owner only.

    Raises SettingsError when a key is missing and the database is external, or when the key file cannot be used.
    """
    values = {name: secret.get_secret_value() for name in _NAMES if (secret := getattr(settings, name)) is not None}
    missing = [name for name in _NAMES if name not in values]
    if missing and not settings.embedded:
        raise SettingsError(
            [
                f"{PREFIX}{name.upper()} is missing: an external database needs it, "
                f"{'k1:' if name == 'encryption_keys' else ''}$(openssl rand -base64 {KEY_BYTES}) makes one"
                for name in missing
            ]
        )
    if missing:
        values = _kept_keys(settings.data_dir / KEY_FILE) | values
    index = decode_key(values["index_key"])
    link = () if settings.link_key is None else (decode_key(settings.link_key.get_secret_value()),)
    return Keys(values["encryption_keys"], index, decode_key(values["cursor_key"]), (*link, index))


def _kept_keys(path: Path) -> dict[str, str]:
    """Read the key file; the first reader makes it."""
    try:
        if not path.exists():
            _make(path)
        kept = json.loads(path.read_text("utf-8"))
        parse_key_list(kept["encryption_keys"])
        decode_key(kept["cursor_key"])
        if "index_key" not in kept:
            kept = _completed(path)
        decode_key(kept["index_key"])
    except (ValueError, KeyError, TypeError):
        # Made again, it could no longer decrypt what the database holds.
        raise SettingsError([f"{path} is damaged: restore it from a backup, the data folder depends on it"]) from None
    except OSError as error:
        raise SettingsError([f"{path} cannot be used ({error.strerror}): let this user read and write it"]) from None
    return {name: kept[name] for name in _NAMES}


def _make(path: Path) -> None:
    fresh = {"encryption_keys": f"k1:{_random_key()}", "index_key": _random_key(), "cursor_key": _random_key()}
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Linking is atomic and refuses to replace, so that of two processes that start at once one makes the keys and both
    # read the same.
    temporary = _written(path.parent, fresh)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return
    finally:
        os.unlink(temporary)
    _sync_folder(path.parent)


def _completed(path: Path) -> dict[str, str]:
    """Add the key that a key file of an earlier release lacks; of two processes that start at once one does."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        kept: dict[str, str] = json.loads(path.read_text("utf-8"))
        if "index_key" not in kept:
            kept["index_key"] = _random_key()
            os.replace(_written(path.parent, kept), path)
            os.fsync(folder)
    finally:
        os.close(folder)
    return kept


def _written(folder: Path, keys: dict[str, str]) -> str:
    """A temporary file, which is born with mode 0600, that holds the keys and is on the disk."""
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=f".{KEY_FILE}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(keys, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _random_key() -> str:
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode("ascii")
