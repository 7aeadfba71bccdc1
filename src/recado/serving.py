"""The HTTP server of an assembled service: what it is made with, in the process that has the actors and in others."""

from collections.abc import Iterable

from recado.assembly import Assembly
from recado.config.settings import Settings
from recado.descriptors import Descriptors
from recado.http.api.route import MIB, Route
from recado.http.callers.token_authenticator import TokenAuthenticator
from recado.http.server import HttpServer, ServerPart
from recado.storage.core.idempotency import IdempotencyKeys

USES_WRITTEN_EVERY = 60.0  # seconds
_FRONTS_PART = 4  # all fronts together have a quarter of the memory of bodies: large ones go to the owner


def http_server(made: Assembly, routes: Iterable[Route], descriptors: Descriptors, *, part: ServerPart) -> HttpServer:
    """The server of these routes. One that gives connections is in a process beside the one that has the actors."""
    settings, installation = made.settings, made.installation
    return HttpServer(
        routes,
        authenticator=TokenAuthenticator(made.directories.keys, made.directories.sessions),
        idempotency_store=IdempotencyKeys(installation.database),
        limits=settings.request_limits,
        ceilings=made.ceilings,
        clock=made.clock,
        ids=installation.ids,
        base_url=settings.address(),
        host=settings.listen.host,
        port=settings.listen.port,
        admin_token=settings.admin_token.get_secret_value() if settings.admin_token else None,
        trusted_proxies=settings.trusted_proxies,
        body_memory=_body_memory(settings, at_front=part.gives is not None),
        connections=descriptors.inbound,
        arriving=descriptors.arriving,
        connections_of_address=settings.connections_per_address,
        spool_folder=settings.data_dir if settings.database_url is None else None,
        stores_bodies=settings.storage == "local" and settings.database_url is None,
        figures=made.figures,
        part=part,
    )


def _body_memory(settings: Settings, *, at_front: bool) -> int:
    """Its part of what all processes have together (C31)."""
    whole, fronts = settings.body_memory * MIB, settings.processes - 1
    part = whole // _FRONTS_PART
    if at_front:
        return part // fronts
    return whole - part if fronts else whole
