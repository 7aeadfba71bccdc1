"""What docs/journeys.md shows is so."""

import re
from pathlib import Path

import orjson

from recado.domain.core.errors import CODES
from recado.domain.journeys.graph import definition_of
from recado.domain.journeys.problems import JourneyReferences, problems
from recado.http.routes.journeys.journey_models import JourneyBody
from recado.http.routes.journeys.simulation_models import JourneySimulation

PAGE = (Path(__file__).parents[2] / "docs" / "journeys.md").read_text("utf-8")
DRAFT, MENDED = (orjson.loads(text) for text in re.findall(r"-d '(\{.*?\n  \})'", PAGE, re.DOTALL))


def test_the_first_draft_has_the_problems_that_are_shown() -> None:
    shown = orjson.loads(re.findall(r"```json\n(\[.*?\])\n```", PAGE, re.DOTALL)[0])
    assert problems(definition_of(DRAFT), JourneyReferences()) == shown


def test_the_mended_one_has_none() -> None:
    references = JourneyReferences(lists=frozenset({MENDED["gatilho"]["listId"]}))
    assert problems(definition_of(MENDED), references) == []


def test_both_are_of_the_right_types() -> None:
    for document in (DRAFT, MENDED):
        body = JourneyBody.model_validate_json(orjson.dumps(document))
        whole = body.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"passos"})
        assert whole | {"passos": body.passos} == document


def test_the_codes_of_the_page_exist() -> None:
    words = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", PAGE))
    assert words
    assert words <= set(CODES)


def test_what_is_tried_is_understood() -> None:
    asked = re.findall(r"/simulate.*?-d '(\{.*?\n\})'", PAGE, re.DOTALL)
    assert len(asked) == 2
    for text in asked:
        given = orjson.loads(text.replace("'$CONTACT'", "cnt_1"))
        body = JourneySimulation.model_validate_json(orjson.dumps(given))
        assert body.model_dump(by_alias=True, exclude_unset=True) == given
