"""Templates of e-mails that are far too much: MJML that grows or goes deep, and previews of a megabyte (C10.4)."""

from itertools import cycle

import orjson
import pytest
from tests.abuse.attacker import Attacker, keep_on
from tests.abuse.neighbour import Neighbour
from tests.program import Api

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

PATH = "/v2/email/templates"
TAKEN = {200, 201, 409, 422, 429, 503}


def column(inside: str) -> str:
    return f"<mjml><mj-body><mj-section><mj-column>{inside}</mj-column></mj-section></mj-body></mjml>"


def body(name: str, mjml: str) -> bytes:
    return orjson.dumps({"name": name, "subject": "x", "mjml": mjml})


async def test_mjml_that_grows_or_goes_deep_keeps_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    wide = f'<mj-attributes><mj-all css-class="{"x" * 8_000}"/></mj-attributes>'
    rows = "<mj-section><mj-column></mj-column></mj-section>" * 900
    bombs = [
        f"<mjml><mj-head>{wide}</mj-head><mj-body>{rows}</mj-body></mjml>",
        column(f"<mj-text>{'<div>' * 80_000}{'</div>' * 80_000}</mj-text>"),
        f"<mjml><mj-body>{'<mj-wrapper>' * 40_000}",
        column(f"<mj-text>{'<b>x</b>' * 100_000}</mj-text>"),
        "<" * 1_000_000,
    ]
    bodies = cycle([body("bomb", mjml) for mjml in bombs])
    async with neighbour.held():
        answers = await keep_on(seconds, 8, lambda: attacker.ask("POST", PATH, next(bodies)))
    assert set(answers) <= TAKEN
    assert answers[422]


@pytest.mark.long
async def test_previews_of_a_megabyte_keep_nobody_waiting(
    attacker: Attacker, api: Api, neighbour: Neighbour, seconds: float
) -> None:
    html = ("x" * 200 + "{{a}}") * 4_900
    made = await api.call(
        "POST", PATH,
        {"name": f"large {seconds}", "subject": "x", "html": html, "variables": [{"name": "a"}]},
    )  # fmt: skip
    values = orjson.dumps({"variables": {"a": "<&>", **{f"v{n}": "x" * 10_000 for n in range(99)}}})
    async with neighbour.held():
        answers = await keep_on(seconds, 8, lambda: attacker.ask("POST", f"{PATH}/{made['id']}/preview", values))
    assert set(answers) <= TAKEN
    assert answers[200]
