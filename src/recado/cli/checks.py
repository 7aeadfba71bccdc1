"""The checks of `recado doctor`, each a function to findings; a later one runs only on what an earlier one opened."""

import os
import secrets
import shlex
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from recado.cli.errors import explain
from recado.config.errors import SettingsError
from recado.config.logging import configure_logging
from recado.config.secrets import KEY_FILE
from recado.config.settings import Settings, database_host, load_settings, unknown_variables
from recado.engine.clock import SystemClock
from recado.installation import Installation
from recado.storage.abandoned_clusters import abandoned_clusters
from recado.storage.organizations import all_organizations
from recado.storage.service_folder import USERS_LOCK

_SKEW_LIMIT = 2.0  # seconds
_TOOL_TIMEOUT = 5.0
_SHORT_TOKEN = 20  # characters
_HERE = frozenset({"127.0.0.1", "::1", "localhost"})  # a simulator, which calls any address


class Verdict(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found about its subject, in one line that says what to mend."""

    subject: str
    verdict: Verdict
    text: str


async def examine(data_dir: Path | None) -> list[Finding]:
    """Run every check that can be run."""
    try:
        settings = load_settings(data_dir=data_dir)
    except SettingsError as error:
        return [Finding("settings", Verdict.FAILURE, line) for line in error.lines]
    configure_logging("error", settings.log_format)
    findings = list(_settings(settings, dict(os.environ)))
    installation = Installation(settings, clock=SystemClock(), random_bytes=secrets.token_bytes)
    try:
        await installation.start()
    except SettingsError as error:
        findings += [Finding("keys" if "KEY" in line else "database", Verdict.FAILURE, line) for line in error.lines]
    except Exception as error:
        lines = explain(error)
        if lines is None:
            raise
        findings += [Finding("database", Verdict.FAILURE, line) for line in lines]
    else:
        findings += _keys(settings)
        findings += await _database(installation)
        findings += await _clock(installation)
    finally:
        await installation.stop()
    findings += _left_behind()
    findings += await _providers(settings)
    return findings


def _settings(settings: Settings, environment: dict[str, str]) -> Iterator[Finding]:
    strange = unknown_variables(environment)
    for name in strange:
        yield Finding("settings", Verdict.WARNING, f"{name} is no setting: correct its name or remove it")
    token = settings.admin_token
    if token is not None and len(token.get_secret_value()) < _SHORT_TOKEN:
        yield Finding("settings", Verdict.WARNING, f"RECADO_ADMIN_TOKEN has less than {_SHORT_TOKEN} characters")
    if not strange:
        yield Finding("settings", Verdict.OK, f"the API is to listen on {settings.listen.host}:{settings.listen.port}")


def _keys(settings: Settings) -> Iterator[Finding]:
    path = settings.data_dir / KEY_FILE
    if not path.exists():
        yield Finding("keys", Verdict.OK, "taken from the settings")
    elif (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077:
        yield Finding("keys", Verdict.FAILURE, f"{path} can be read by others (mode {mode:o}): chmod 600 {path}")
    else:
        yield Finding("keys", Verdict.OK, f"kept in {path}: back it up together with the database")


async def _database(installation: Installation) -> list[Finding]:
    version = await installation.database.fetchval("show server_version")
    organizations = await all_organizations(installation.database)
    place = database_host(installation.settings)
    findings = [Finding("database", Verdict.OK, f"PostgreSQL {version} ({place}), every migration applied")]
    if not organizations:
        text = "there is no organization: make one with 'recado org create --name NAME'"
        findings.append(Finding("database", Verdict.WARNING, text))
    return findings


def _left_behind() -> Iterator[Finding]:
    """Databases of this machine that nobody uses any more: an operator removes them, and not we."""
    for each in abandoned_clusters():
        folder, lock = shlex.quote(str(each.folder)), shlex.quote(str(each.folder / USERS_LOCK))
        remove = f"flock -n {lock} rm -rf {folder}"  # nothing, when somebody uses it after all
        if each.pid is not None:
            remove = f"kill -INT {each.pid} && tail --pid={each.pid} -f /dev/null && {remove}"
        text = (
            f"{each.folder} ({each.size / 2**20:.0f} MiB) was the database of {each.data_dir}, which is gone or has "
            f"another one. Unless that folder was moved, or is not mounted now: {remove}"
        )
        yield Finding("database", Verdict.WARNING, text)


async def _clock(installation: Installation) -> list[Finding]:
    """The database's clock beside ours, and the last start of the service, which cannot lie ahead."""
    before = installation.clock.now()
    theirs: datetime = await installation.database.fetchval("select clock_timestamp()")
    after = installation.clock.now()
    skew = max((before - theirs).total_seconds(), (theirs - after).total_seconds(), 0.0)
    if skew > _SKEW_LIMIT:
        text = f"{skew:.1f} s apart from the database's: let both machines follow a time server"
        return [Finding("clock", Verdict.FAILURE, text)]
    taken_at: datetime = await installation.database.fetchval("select max(taken_at) from dispatchers")
    if (ahead := (taken_at.timestamp() if taken_at.year > 1 else 0) - after.timestamp()) > _SKEW_LIMIT:
        text = f"set back by {ahead:.0f} s since the service last started: set it right"
        return [Finding("clock", Verdict.FAILURE, text)]
    return [Finding("clock", Verdict.OK, f"{after.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, as the database's")]


async def _providers(settings: Settings) -> list[Finding]:
    match settings.adapter_chatapp:
        case "bridge":
            return [await _answers("the bridge", str(settings.bridge_chatapp_url), "start it")]
        case "cloud":
            answers = await _answers(
                "the hosted API", str(settings.cloud_url), "look at RECADO_CLOUD_URL and the network"
            )
            return [answers, *_cloud(settings)]
        case "sandbox":
            return [Finding("providers", Verdict.WARNING, "chatapp: live messages go to the sandbox, to nobody")]
        case _:
            text = "chatapp: none for live, whose sends answer 502; test uses the sandbox"
            return [Finding("providers", Verdict.OK, text)]


def _cloud(settings: Settings) -> Iterator[Finding]:
    """What the provider is to be told, and what would keep its callbacks away."""
    address = f"{settings.address()}/v2/callbacks/chatapp/cloud"
    if address.startswith("https://"):
        yield Finding("providers", Verdict.OK, f"chatapp: enter {address} as the callback address at the provider")
    elif urlsplit(str(settings.cloud_url)).hostname not in _HERE:
        text = f"chatapp: the provider calls https addresses only, not {address}: set RECADO_BASE_URL"
        yield Finding("providers", Verdict.WARNING, text)
    token = settings.cloud_verify_token
    if token is not None and len(token.get_secret_value()) < _SHORT_TOKEN:
        yield Finding("settings", Verdict.WARNING, f"RECADO_CLOUD_VERIFY_TOKEN has less than {_SHORT_TOKEN} characters")


async def _answers(what: str, url: str, mend: str) -> Finding:
    """Any answer will do: what the provider says to a request without a message is its own affair."""
    timeout = aiohttp.ClientTimeout(total=_TOOL_TIMEOUT)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, allow_redirects=False):
            return Finding("providers", Verdict.OK, f"chatapp: {what} at {url} answers")
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        reason = type(error).__name__
        return Finding("providers", Verdict.FAILURE, f"chatapp: {what} at {url} does not answer ({reason}): {mend}")
