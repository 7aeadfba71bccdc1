"""Journeys (C9) as records: what lists read of them, and the whole with its steps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from recado.domain.core.errors import Problem, conflict
from recado.domain.core.ids import Identified
from recado.domain.journeys.graph import JourneyDefinition, JourneyStep, Reentry, definition_of
from recado.domain.journeys.journey import MAX_JOURNEYS, SHORTEST_STEM, JourneyStatus, copy_name
from recado.domain.journeys.uses import uses_of
from recado.domain.messages.owner_pauses import OwnerPauses
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Limit, Table, lock_organization


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedJourney(Identified):
    """A journey without its steps. `chain_id`: its first version; `canais`, `fluxo`: what its steps come to.

    `gatilho`, `silencio` and `teto_de_frequencia` are JSON, as the caller wrote them; `pausada_por`: what an
    `AutomaticPause` tells. `substituida_por`: the version that took its place; then it takes no more entries
    (`entradas_encerradas`).
    """

    organization_id: str
    env: str
    id: str
    chain_id: str
    versao: int = 1
    versao_de: str | None = None
    status: JourneyStatus = JourneyStatus.RASCUNHO
    name: str
    descricao: str | None = None
    fuso_horario: str
    gatilho: Mapping[str, Any]
    inicio: str
    reentrada: Reentry
    intervalo_reentrada_horas: int
    silencio: Mapping[str, Any] | None = None
    teto_de_frequencia: Mapping[str, Any] | None = None
    meta_evento: str | None = None
    canais: tuple[str, ...] = ()
    fluxo: tuple[str, ...] = ()
    criada_por_id: str | None = None
    ativada_em: datetime | None = None
    pausada_em: datetime | None = None
    pausada_por: Mapping[str, Any] | None = None
    substituida_por: str | None = None
    entradas_encerradas: bool = False
    arquivada_em: datetime | None = None
    revision: int = 1
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Journey(ListedJourney):
    """A journey. `passos`: its steps as JSON. `pausas`: begin and end of its last pauses, as `OwnerPauses` has them.

    `withdrawn`: a customer archived it, so what it has made goes no further.
    """

    passos: tuple[Mapping[str, Any], ...]
    pausas: tuple[datetime, ...] = ()
    withdrawn: bool = False

    @property
    def pauses(self) -> OwnerPauses:
        """What it holds back, and held."""
        paused_at = self.pausada_em if self.status is JourneyStatus.PAUSADA else None
        return OwnerPauses(self.organization_id, self.env, self.id, self.revision, paused_at, self.pausas)

    def definition(self, steps: Iterable[JourneyStep] | None = None) -> JourneyDefinition:
        """What it does, read anew each time. `steps`: its own, read already."""
        return definition_of(
            {
                "gatilho": self.gatilho,
                "inicio": self.inicio,
                "passos": self.passos,
                "reentrada": self.reentrada,
                "intervaloReentradaHoras": self.intervalo_reentrada_horas,
                "silencio": self.silencio,
                "tetoDeFrequencia": self.teto_de_frequencia,
                "meta": {"evento": self.meta_evento},
            },
            steps,
        )


_CONVERTED: Final = {"status": JourneyStatus, "reentrada": Reentry, "canais": tuple, "fluxo": tuple}


class _Journeys(Table[Journey]):
    """Journeys: whoever locks one waits for those who let contacts in at that moment, and for none who come later."""

    async def get_locked(self, connection: Executor, *key: str) -> Journey | None:
        await connection.execute(self.sql.come_first, key[2])
        return await super().get_locked(connection, *key)


JOURNEYS: Final = _Journeys(
    "journeys",
    Journey,
    "journey",
    own=load("journeys"),
    convert={**_CONVERTED, "passos": tuple, "pausas": tuple},
    derived={"uses": lambda journey: uses_of(journey.gatilho, journey.passos)},
    limit=Limit(MAX_JOURNEYS, "journeys that are not archived", "LIMITE_DE_JORNADAS"),
)
LISTED_JOURNEYS: Final = Table("journeys", ListedJourney, "journey", own=load("journeys"), convert=_CONVERTED)
SQL = JOURNEYS.sql


async def insert_copy(connection: Executor, copy: Journey) -> Journey:
    """Store a copy of a journey under the first name that is free. Run it in a transaction."""
    await lock_organization(connection, copy.organization_id)
    rows = await connection.fetch(SQL.copies_of, copy.organization_id, copy.env, copy.name[:SHORTEST_STEM].rstrip())
    named = replace(copy, name=copy_name(copy.name, {row["name"] for row in rows}))
    return await JOURNEYS.insert(connection, named)


async def insert_version(connection: Executor, version: Journey) -> Journey:
    """Store the next version of its chain. Run it in a transaction.

    Raises `Problem` VERSAO_EM_RASCUNHO when another one is still a draft (C9.11.2).
    """
    await lock_organization(connection, version.organization_id)
    row = await connection.fetchrow(SQL.versions, version.organization_id, version.env, version.chain_id)
    if row["draft"] is not None:
        raise another_draft(row["draft"])
    return await JOURNEYS.insert(connection, replace(version, versao=row["highest"] + 1))


def another_draft(journey_id: str) -> Problem:
    """409: the chain has a version that is not activated yet."""
    detail = "Another version of this journey is a draft: go on with that one, or archive it."
    return conflict("VERSAO_EM_RASCUNHO", detail, journeyId=journey_id)


@dataclass(frozen=True, slots=True)
class Beginning:
    """The list or segment that a journey begins with. `size`: of a list, its members."""

    name: str
    size: int | None


async def beginnings(
    executor: Executor, organization_id: str, env: str, journeys: Sequence[ListedJourney]
) -> dict[str, Beginning]:
    """By id, the lists and segments of these journeys that exist."""
    lists, segments = (
        sorted({journey.gatilho[name] for journey in journeys if name in journey.gatilho})
        for name in ("listId", "segmentId")
    )
    if not lists and not segments:
        return {}
    rows = await executor.fetch(SQL.names, organization_id, env, lists, segments)
    return {row["id"]: Beginning(row["name"], row["size"]) for row in rows}
