"""MJML compiled in a process of its own: what harms that process harms nobody else (C10.4)."""

from collections.abc import AsyncIterator

import pytest

from recado.domain.core.errors import Problem
from recado.engine.clock import SystemClock
from recado.http.bodies.body_workers import BodyWorkers
from recado.http.routes.email.mjml_document import PROCESSES, MjmlDocument, compile_mjml, compiled


def column(inside: str) -> str:
    return f"<mjml><mj-body><mj-section><mj-column>{inside}</mj-column></mj-section></mj-body></mjml>"


@pytest.fixture
async def workers() -> AsyncIterator[BodyWorkers]:
    running = BodyWorkers(SystemClock(), processes=PROCESSES)
    await running.start()
    yield running
    await running.stop()


async def test_what_is_compiled_names_what_it_uses(workers: BodyWorkers) -> None:
    html, names = await compile_mjml(
        workers, column('<mj-button href="{{ url }}?a=1">{{name}}</mj-button>'), caller="org"
    )
    assert names == ["url", "name"]
    assert 'href="{{ url }}?a=1"' in html
    assert workers.idle == PROCESSES


async def test_a_fault_that_only_the_compiler_sees_has_a_place(workers: BodyWorkers) -> None:
    source = "<mjml><mj-head>\n<mj-title>é</mj-title><mj-style>a<!-- b --></mj-style></mj-head></mjml>"
    with pytest.raises(ValueError, match=r"position"):
        compiled(source)
    with pytest.raises(Problem) as caught:
        await compile_mjml(workers, source, caller="org")
    assert caught.value.code == "MJML_INVALID"
    assert caught.value.meta == {"line": 2, "column": 34}


async def test_a_large_email_is_compiled(workers: BodyWorkers) -> None:
    source = column(f"<mj-text>{'Hello {{name}}, ' * 4_000}{'x' * 800_000}</mj-text>")
    html, names = await compile_mjml(workers, source, caller="org")
    assert (names, len(html) > 850_000) == (["name"], True)


@pytest.mark.parametrize(
    "source",
    [
        f"<mjml><mj-body>{'<mj-wrapper>' * 20_000}{'</mj-wrapper>' * 20_000}</mj-body></mjml>",
        column(f"<mj-text>{'<div>' * 50_000}{'</div>' * 50_000}</mj-text>"),
        column("<mj-text>x</mj-text>" * 40_000),
        column(f"<mj-text>{'{{a}}' * 100_000}</mj-text>"),
        f'<mjml><mj-head><mj-attributes><mj-all a="{"x" * 500_000}"/></mj-attributes></mj-head><mj-body>'
        + "<mj-section></mj-section>" * 20_000,
        "<" * 1_000_000,
    ],
)
async def test_a_bomb_is_refused_and_takes_nothing(workers: BodyWorkers, source: str) -> None:
    await compile_mjml(workers, column(""), caller="org")
    with pytest.raises(Problem) as caught:
        await compile_mjml(workers, source, caller="org")
    assert caught.value.code == "MJML_INVALID"
    assert workers.idle == PROCESSES  # the same process goes on


def test_a_document_without_faults_is_compiled_where_it_is_read() -> None:
    document = MjmlDocument(mjml=column("<mj-text>{{a}}</mj-text>"))
    assert (document.names, document.faults) == (["a"], [])
