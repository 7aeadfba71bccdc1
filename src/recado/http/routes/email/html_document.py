"""Large HTML as a body that a worker process reads: there its links are found, while nobody else waits (C27.1)."""

from typing import Final, Self

import orjson
from pydantic import Field, model_validator

from recado.domain.email.html_links import HtmlPlaces, LinkPlace, places_of
from recado.http.api.models import ApiModel
from recado.http.bodies.body_workers import BodyWorkers
from recado.services.email.tracking import PlacesElsewhere

PROCESSES: Final = 1


class HtmlDocument(ApiModel):
    """`links` and `end`: as in `HtmlPlaces`."""

    html: str
    links: list[tuple[int, int, str]] = Field(default_factory=list)
    end: int = 0

    @model_validator(mode="after")
    def _look(self) -> Self:
        found = places_of(self.html)
        self.links, self.end = [(start, end, url) for start, end, url in found.links], found.end
        self.html = ""
        return self


def places_by(workers: BodyWorkers) -> PlacesElsewhere:
    """Has these processes look through HTML."""

    async def places(html: str, *, caller: str) -> HtmlPlaces:
        body = orjson.dumps({"html": html})
        read = await workers.read(HtmlDocument, body, caller=caller, bad_status=422, most_values=None)
        document: HtmlDocument = await read.value()
        return HtmlPlaces([LinkPlace(*each) for each in document.links], document.end)

    return places
