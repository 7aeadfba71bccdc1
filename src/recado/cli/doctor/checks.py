"""The order of the checks, and those of settings, keys and what was left behind."""

import os
import shlex
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import SecretStr

from recado.cli.doctor.database import database
from recado.cli.doctor.finding import Finding, Verdict, failure, ok, warning
from recado.cli.doctor.machine import address, machine
from recado.cli.doctor.providers import providers
from recado.cli.doctor.running import at_the_address
from recado.cli.doctor.storage import storage
from recado.config.errors import SettingsError
from recado.config.logging import configure_logging
from recado.config.secrets import KEY_FILE, load_keys
from recado.config.settings import Settings, load_settings, misspelled, unused_together
from recado.storage.embedded.abandoned_clusters import Abandoned, abandoned_clusters
from recado.storage.embedded.service_folder import USERS_LOCK

_SHORT_TOKEN = 20  # characters


async def examine(data_dir: Path | None) -> list[Finding]:
    """Run every check that can be run. None of them makes, starts or writes anything."""
    findings = list(_names(dict(os.environ)))
    try:
        settings = load_settings(data_dir=data_dir)
    except SettingsError as error:
        return [*findings, *(failure("settings", line) for line in error.lines)]
    configure_logging("error", settings.log_format)
    findings += _settings(settings)
    findings += _keys(settings)
    listening = await address(settings)
    answers = any(each.subject == "service" for each in listening)
    looked = await database(settings, answers=answers)
    findings += [at_the_address(each, looked, settings) for each in listening] if answers else listening
    findings += machine(settings)
    findings += looked.findings
    findings += left_behind(abandoned_clusters())
    findings.append(await storage(settings))
    findings += await providers(settings)
    return findings


def _names(environment: dict[str, str]) -> Iterator[Finding]:
    """What is said first: a setting that is missing or wrong may be one of these."""
    strange = misspelled(environment)
    for name, meant in strange:
        correct = f"did you mean {meant}?" if meant else "correct its name or remove it"
        yield warning("settings", f"{name} is not a setting: {correct}")
    if not strange:
        yield ok("settings", "every RECADO_ variable is a setting")


def _settings(settings: Settings) -> Iterator[Finding]:
    for text in unused_together(settings):
        yield warning("settings", text)
    for name in ("admin_token", "metrics_token", "cloud_verify_token"):
        token: SecretStr | None = getattr(settings, name)
        if token is not None and len(token.get_secret_value()) < _SHORT_TOKEN:
            yield warning("settings", f"RECADO_{name.upper()} has less than {_SHORT_TOKEN} characters")


def _keys(settings: Settings) -> Iterator[Finding]:
    path = settings.data_dir / KEY_FILE
    if settings.embedded and not path.exists():
        yield ok("keys", f"'recado serve' makes those that the settings do not give, in {path}")
        return
    try:
        load_keys(settings)
    except SettingsError as error:
        yield from (failure("keys", line) for line in error.lines)
        return
    if not path.exists():
        yield ok("keys", "taken from the settings")
    elif (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077:
        yield failure("keys", f"{path} can be read by others (mode {mode:o}): chmod 600 {path}")
    else:
        yield ok("keys", f"kept in {path}: back it up together with the database")


def left_behind(clusters: Sequence[Abandoned]) -> list[Finding]:
    """Databases of this machine that nobody uses any more: an operator removes them, and not we. One line for all."""
    parts = tuple(_left(clusters))
    if len(parts) < 2:
        return [*parts]
    size = sum(each.size for each in clusters) / 2**20
    text = (
        f"{len(parts)} folders in {clusters[0].folder.parent} ({size:.0f} MiB) were databases of data folders that are "
        "gone or have another one. Look first whether these were moved, or are not mounted now; 'recado doctor --json' "
        "names each, with the command that removes it"
    )
    return [Finding("database", Verdict.WARNING, text, parts)]


def _left(clusters: Sequence[Abandoned]) -> Iterator[Finding]:
    for each in clusters:
        folder, lock = shlex.quote(str(each.folder)), shlex.quote(str(each.folder / USERS_LOCK))
        remove = f"flock -n {lock} rm -rf {folder}"  # nothing, when somebody uses it after all
        if each.pid is not None:
            remove = f"kill -INT {each.pid} && tail --pid={each.pid} -f /dev/null && {remove}"
        text = (
            f"{each.folder} ({each.size / 2**20:.0f} MiB) was the database of {each.data_dir}, which is gone or has "
            f"another one. Unless that folder was moved, or is not mounted now: {remove}"
        )
        yield warning("database", text)
