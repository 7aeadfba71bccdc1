"""Where the embedded database of a data folder lives, and as which user its server runs.

A plain user keeps it inside the data folder. PostgreSQL refuses to run as root, and a closed home folder keeps any
other user out: root keeps it in a folder of `/var/lib/recado` that a service user may enter; the data folder names it.
"""

import os
import pwd
import re
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import structlog

from recado.storage.embedded.cluster_lock import FileLock
from recado.storage.embedded.postgres_binaries import bundled_binaries, copied_binaries

log = structlog.get_logger(__name__)

SERVICE_ROOT = Path("/var/lib/recado")
SERVICE_USER = "recado-pg"
INSIDE = "postgres"
LOCATION = "postgres.location"
# In a cluster's folder: whose it is, and what processes lock to use its server, and to start or stop it.
DATA_FOLDER = "data_folder"
USERS_LOCK = "users.lock"
CHANGE_LOCK = "change.lock"
ACCOUNT_LOCK = "account.lock"  # beside the clusters' folders


class NoHome(Exception):
    """The embedded database has no place to live, or the one it had is gone; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Home:
    """Folder of one cluster (its data, socket, log and locks), the user that owns it, and the binaries to run."""

    folder: Path
    user: str
    uid: int
    gid: int
    binaries: Path

    @property
    def foreign(self) -> bool:
        """Whether the server runs as another user than we do."""
        return self.uid != os.geteuid()


def locate(data_dir: Path, service_root: Path = SERVICE_ROOT) -> Home:
    """The home of a data folder's cluster, made when it is missing. Raises NoHome, BinariesMissing."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    data_dir = data_dir.resolve()
    inside = data_dir / INSIDE
    if os.geteuid() != 0:
        if (data_dir / LOCATION).exists():
            raise NoHome(f"the database of {data_dir} was made by root: run as root, or take another data folder")
        inside.mkdir(mode=0o700, exist_ok=True)
        me = _account_of(os.geteuid())
        return Home(inside, me.pw_name, me.pw_uid, me.pw_gid, bundled_binaries())
    if inside.exists():
        # Root would write where a plain user may plant links.
        raise NoHome(f"the database of {data_dir} belongs to a plain user: run as the owner of {inside}")
    return _service_home(data_dir, service_root)


def service_folder(data_dir: Path) -> Path | None:
    """The folder outside the data folder that root's cluster lives in, or None."""
    try:
        name = (data_dir / LOCATION).read_text().strip()
    except FileNotFoundError:
        return None
    return Path(name) if name else None


def holds_database(data_dir: Path) -> bool:
    """Whether a data folder has a database, made by a plain user or by root; only looks."""
    try:
        named = (data_dir / LOCATION).stat().st_size > 0  # empty: only locked, by a start that failed
    except (FileNotFoundError, NotADirectoryError):
        named = False
    return named or (data_dir / INSIDE).exists()


def _service_home(data_dir: Path, service_root: Path) -> Home:
    binaries = _service_binaries(service_root)
    with FileLock(data_dir / LOCATION).held_now():
        folder = service_folder(data_dir)
        if folder is None:
            account = _service_account(service_root)
            _mention_earlier(data_dir, service_root)
            slug = re.sub(r"[^a-z0-9]+", "-", data_dir.name.lower()).strip("-")[:32] or "data"
            folder = service_root / f"{slug}-{secrets.token_hex(4)}"
            _make_folder(folder, data_dir, account)
        elif not folder.is_dir():
            raise NoHome(
                f"the database of {data_dir} is gone: it lived in {folder}. Bring that folder back "
                f"(in a container, keep {folder.parent} on a volume too), or remove "
                f"{data_dir / LOCATION} to begin with an empty database"
            )
        else:
            _refuse_copies(folder, data_dir)
            cluster = folder / "cluster"
            account = _account_of(cluster.stat().st_uid) if cluster.exists() else _service_account(service_root)
            os.chown(folder, 0, account.pw_gid)
    return Home(folder, account.pw_name, account.pw_uid, account.pw_gid, binaries)


def _make_folder(folder: Path, data_dir: Path, account: pwd.struct_passwd) -> None:
    """Make the folder of a new cluster, named in the data folder; nothing stays when that fails, as on a full disk."""
    location = data_dir / LOCATION
    try:
        folder.mkdir(mode=0o710)
        os.chown(folder, 0, account.pw_gid)
        folder.chmod(0o710)
        _remember(folder, data_dir)
        # Last, so that a crash before it leaves an unused folder and not a name without one.
        location.write_text(f"{folder}\n")
    except BaseException:
        os.truncate(location, 0)  # half a name would be that of a lost database; others lock the file: it stays
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _mention_earlier(data_dir: Path, service_root: Path) -> None:
    """A data folder that was removed and made again starts from nothing; what it had is kept: it may have moved."""
    for note in service_root.glob(f"*/{DATA_FOLDER}"):
        if note.read_text().strip() == str(data_dir):
            log.warning("earlier_database_kept", data_dir=str(data_dir), folder=str(note.parent))


def _refuse_copies(folder: Path, data_dir: Path) -> None:
    """A copied data folder names the database of its original: two installations would write into one."""
    original = Path((folder / DATA_FOLDER).read_text().strip())
    if original == data_dir:
        return
    if service_folder(original) == folder and not os.path.samefile(original, data_dir):
        raise NoHome(
            f"{data_dir} is a copy of {original} and would share its database: remove {data_dir / LOCATION} to begin "
            "with an empty database"
        )
    _remember(folder, data_dir)


def _remember(folder: Path, data_dir: Path) -> None:
    (folder / DATA_FOLDER).write_text(f"{data_dir}\n")


def _service_binaries(service_root: Path) -> Path:
    if not service_root.exists():
        service_root.mkdir(parents=True, exist_ok=True)
        service_root.chmod(0o755)
    return copied_binaries(service_root)


def _service_account(service_root: Path) -> pwd.struct_passwd:
    """The user of our own that root's servers run as, made where that is possible; else the system's `nobody`.

    One at a time: who asks while another adds the user would take `nobody`, and find the user the next time.
    """
    with FileLock(service_root / ACCOUNT_LOCK).held_now():
        return _account_for_servers()


def _account_for_servers() -> pwd.struct_passwd:
    for name in (SERVICE_USER, "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            if name == SERVICE_USER and _add_service_user():
                return pwd.getpwnam(name)
    raise NoHome(f"PostgreSQL refuses to run as root: add a system user {SERVICE_USER}, or run as a plain user")


def _add_service_user() -> bool:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        return False
    command = [useradd, "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    command += ["--shell", "/usr/sbin/nologin", SERVICE_USER]
    made = subprocess.run(command, capture_output=True, check=False).returncode  # noqa: S603 - constant arguments
    return made == 0 or made == 9  # 9: another process made it meanwhile


def _account_of(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise NoHome(f"PostgreSQL needs a user name: the user id {uid} has none in /etc/passwd") from None
