"""What a command says when it cannot do its work: lines for people, who want to know what to fix."""

import errno
import re
import socket
import ssl
from typing import Any

import asyncpg

from recado.config.errors import SettingsError
from recado.domain.core.errors import Problem
from recado.fronts.supervision import FrontsFailed
from recado.storage.cells.holding import MoveRefused
from recado.storage.core.connections.failures import collided, connection_lost, refusal_to_write
from recado.storage.core.connections.postgres import UnsuitableServer
from recado.storage.core.upkeep.migrate import MigrationError
from recado.storage.dispatch.ownership import ClocksApart, Owned
from recado.storage.embedded.backup import BackupError
from recado.storage.embedded.cluster import ClusterError
from recado.storage.embedded.cluster_lock import LockTimeout
from recado.storage.embedded.embedded import EmbeddedError
from recado.storage.embedded.postgres_binaries import BinariesMissing
from recado.storage.embedded.service_folder import NoHome


class CommandError(Exception):
    """A command cannot do what was asked; the text is one line that says what to do."""


# Errors whose own text is written for the operator.
_TELLING = (
    BackupError,
    CommandError,
    MigrationError,
    UnsuitableServer,
    ClusterError,
    EmbeddedError,
    LockTimeout,
    BinariesMissing,
    NoHome,
    Owned,
    FrontsFailed,
    ClocksApart,
    MoveRefused,
)


def explain(error: BaseException) -> list[str] | None:
    """Return what to print for an error, one line each; None for a defect of the program."""
    match error:
        case SettingsError(lines=lines):
            return list(lines)
        case Problem(status=503):
            return [f"the database does not answer{_cause(error)}: start it, or correct RECADO_DATABASE_URL"]
        case Problem(detail=detail):
            return [_one_line(detail)]
        case OSError(errno=errno.EADDRINUSE):
            return ["the address is in use: stop what listens there, or choose another with --listen"]
        case OSError(errno=errno.ENOSPC):
            return ["the disk is full: make room, and try again"]
        case PermissionError(filename=str() as name):
            return [f"{name} is not accessible: let this user read and write it, or choose another --data-dir"]
    if isinstance(error, _TELLING):
        return [_one_line(str(error))]
    return _database(error) or _usage(error)


def _cause(error: BaseException) -> str:
    """Why the database cannot be reached, in brackets; without its address, which may stand in an error's text."""
    match error.__cause__:
        case ConnectionRefusedError():
            return " (connection refused: nothing listens at its address)"
        case socket.gaierror():
            return " (its host name is not known)"
        case TimeoutError():
            return " (no answer in time)"
        case ssl.SSLError():
            return " (TLS failed)"
        case OSError(strerror=str() as text):
            return f" ({text.lower()})"
        case asyncpg.PostgresError(sqlstate=str() as state) as cause:
            return f" ({type(cause).__name__}, {state})"
        case BaseException() as cause:
            return f" ({type(cause).__name__})"
        case _:
            return ""


def _database(error: BaseException) -> list[str] | None:
    match error:
        case asyncpg.LockNotAvailableError():
            return ["a table of the database is locked by somebody else: let that end, and give the same command again"]
        case asyncpg.QueryCanceledError():
            return ["the database took too long: look what keeps it busy, and give the same command again"]
        case asyncpg.UndefinedTableError() | asyncpg.UndefinedColumnError() | asyncpg.InvalidSchemaNameError():
            return ["the database has no tables of this version: 'recado migrate' makes them"]
        case asyncpg.InvalidAuthorizationSpecificationError():
            return ["the database refuses the user or the password of RECADO_DATABASE_URL: correct them"]
        case asyncpg.InvalidCatalogNameError():
            return ["the database that RECADO_DATABASE_URL names does not exist: create it, empty, in UTF8"]
        case asyncpg.InsufficientPrivilegeError():
            return ["the user of RECADO_DATABASE_URL may not create or use tables: grant it, or make it the owner"]
        case asyncpg.ClientConfigurationError():
            return [
                "RECADO_DATABASE_URL cannot be read: give an address such as postgresql://user:password@host/recado"
            ]
    if (refused := refusal_to_write(error)) is not None:
        return [f"a database does not write, as {refused}: mend that, and give the same command again"]
    if collided(error):
        return ["somebody else changed the same rows at the same time: give the same command again"]
    if _is_lost(error):
        return ["the connection to a database was lost: give the same command again"]
    return None


def _is_lost(error: BaseException) -> bool:
    """Whether the server of a database failed, or the way to it. What is wrong with a file is no such thing."""
    if isinstance(error, OSError):
        return isinstance(error, ConnectionError | TimeoutError | socket.gaierror)
    return connection_lost(error)


_PARSER_WORDS = (
    ("Value error, ", ""),
    ("Input should be a valid integer, unable to parse string as an integer", "must be a whole number"),
    ("Input should be a valid number, unable to parse string as a number", "must be a number"),
    ("Input should be", "must be"),
)
_NO_NUMBERS = (  # as another version of the parser says the same
    (re.compile(r"'[^']*' is not a valid int(eger)?\.?"), "must be a whole number."),
    (re.compile(r"'[^']*' is not a valid float\.?"), "must be a number."),
)


def _usage(error: Any) -> list[str] | None:
    """A mistake in the command line, as the parser of the command line tells it."""
    if not hasattr(error, "format_message"):
        return None
    message = _one_line(error.format_message())
    for theirs, ours in _PARSER_WORDS:
        message = message.replace(theirs, ours)
    for pattern, ours in _NO_NUMBERS:
        message = pattern.sub(ours, message)
    context = getattr(error, "ctx", None)
    if not message or context is None:
        return [message] if message else []  # a bare `recado` has printed its help
    end = "" if message.endswith((".", "?")) else "."
    return [f"{message}{end} Try '{context.command_path} --help'."]


def _one_line(text: str) -> str:
    return " ".join(text.split())
