"""Large HTML looked through in a process of its own: it finds what would be found here (C27.1)."""

from collections.abc import AsyncIterator

import pytest

from recado.domain.email.html_links import MOST_PLACES, places_of
from recado.engine.clock import SystemClock
from recado.http.bodies.body_workers import BodyWorkers
from recado.http.routes.email.html_document import PROCESSES, places_by

LINK = '<p class="x"><a href="https://example.com/?a=%d&amp;b=ç">é 💌</a></p>\n'


@pytest.fixture
async def workers() -> AsyncIterator[BodyWorkers]:
    running = BodyWorkers(SystemClock(), processes=PROCESSES)
    await running.start()
    yield running
    await running.stop()


async def test_the_same_is_found_elsewhere(workers: BodyWorkers) -> None:
    html = "".join(LINK % number for number in range(MOST_PLACES + 10)) + "</body>"
    found = await places_by(workers)(html, caller="org")
    here = places_of(html)
    assert (list(found.links), found.end) == (list(here.links), here.end)
    assert found.links[0].url == "https://example.com/?a=0&b=ç"
    assert await places_by(workers)("", caller="org") == places_of("")
