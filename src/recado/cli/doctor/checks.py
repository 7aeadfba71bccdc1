"""The order of the checks, and those of settings, keys, providers and what was left behind."""

import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from recado.channel_table import sms_gateways_of
from recado.cli.doctor.database import database
from recado.cli.doctor.finding import Finding, failure, ok, warning
from recado.cli.doctor.machine import address, machine
from recado.cli.doctor.running import at_the_address
from recado.config.errors import SettingsError
from recado.config.logging import configure_logging
from recado.config.secrets import KEY_FILE, load_keys
from recado.config.settings import Settings, load_settings, misspelled
from recado.domain.channels.chatapp import CHATAPP
from recado.domain.channels.sms import SMS
from recado.storage.embedded.abandoned_clusters import abandoned_clusters
from recado.storage.embedded.service_folder import USERS_LOCK

_TOOL_TIMEOUT = 5.0
_SHORT_TOKEN = 20  # characters
_HERE = frozenset({"127.0.0.1", "::1", "localhost"})  # a simulator, which calls any address


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
    findings += _left_behind()
    findings += await _providers(settings)
    findings += await _sms_gateways(settings)
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
    token = settings.admin_token
    if token is not None and len(token.get_secret_value()) < _SHORT_TOKEN:
        yield warning("settings", f"RECADO_ADMIN_TOKEN has less than {_SHORT_TOKEN} characters")


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
        yield warning("database", text)


async def _providers(settings: Settings) -> list[Finding]:
    match settings.adapter_chatapp:
        case "bridge":
            return [await _answers(CHATAPP, "the bridge", str(settings.bridge_chatapp_url), "start it")]
        case "cloud":
            answers = await _answers(
                CHATAPP, "the hosted API", str(settings.cloud_url), "look at RECADO_CLOUD_URL and the network"
            )
            return [answers, *_cloud(settings)]
        case "sandbox":
            return [warning("providers", "chatapp: live messages go to the sandbox, to nobody")]
        case _:
            text = "chatapp: none for live, whose sends answer 502; test uses the sandbox"
            return [ok("providers", text)]


def _cloud(settings: Settings) -> Iterator[Finding]:
    """What the provider is to be told, and what would keep its callbacks away."""
    address = f"{settings.address()}/v2/callbacks/chatapp/cloud"
    if address.startswith("https://"):
        yield ok("providers", f"chatapp: enter {address} as the callback address at the provider")
    elif urlsplit(str(settings.cloud_url)).hostname not in _HERE:
        text = f"chatapp: the provider calls https addresses only, not {address}: set RECADO_BASE_URL"
        yield warning("providers", text)
    token = settings.cloud_verify_token
    if token is not None and len(token.get_secret_value()) < _SHORT_TOKEN:
        yield warning("settings", f"RECADO_CLOUD_VERIFY_TOKEN has less than {_SHORT_TOKEN} characters")


async def _sms_gateways(settings: Settings) -> list[Finding]:
    """Nothing is said where SMS are not set up: most installations have none."""
    found = []
    for gateway in sms_gateways_of(settings):
        if gateway.adapter == "sandbox":
            found.append(
                warning("providers", f"{SMS}: live messages through {gateway.name} go to the sandbox, to nobody")
            )
        else:
            found.append(await _answers(SMS, f"the bridge of {gateway.name}", str(gateway.url), "start it"))
    return found


async def _answers(channel: str, what: str, url: str, fix: str) -> Finding:
    """Any answer will do: what the provider says to a request without a message is its own affair."""
    timeout = aiohttp.ClientTimeout(total=_TOOL_TIMEOUT)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, allow_redirects=False):
            return ok("providers", f"{channel}: {what} at {url} answers")
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        reason = type(error).__name__
        return failure("providers", f"{channel}: {what} at {url} does not answer ({reason}): {fix}")
