"""A payload of the wrong shape is refused with one that is taken, once."""

from typing import Any

import pytest
from pydantic import ValidationError

from recado.http.bodies.field_errors import from_body
from recado.http.routes.messages.message_models import CreateMessage
from recado.http.routes.messages.message_payloads import EXAMPLES, SHAPES


def refused(**body: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(ValidationError) as caught:
        CreateMessage.model_validate(body)
    return [(error.path, error.code, error.message) for error in from_body(caught.value, body)]


def shown(kind: str, message: str) -> bool:
    return f"for type {kind}, the payload is such as" in message


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("payload", [None, "hello", [], {}, {"body": "hello"}])
def test_the_shape_is_shown_once(kind: str, payload: Any) -> None:
    first, *others = refused(type=kind, payload=payload)
    assert shown(kind, first[2])
    assert first[1] in {"REQUIRED", "WRONG_TYPE"}
    assert not any(shown(kind, message) for _, _, message in others)


def test_what_is_shown_would_be_taken() -> None:
    for kind, example in EXAMPLES.items():
        assert SHAPES[kind].validator.validate_python(example) == example


def test_faults_inside_of_the_shape_are_told_without_it() -> None:
    assert refused(type="text", payload={"text": {}}) == [("/payload/text/body", "REQUIRED", "is required")]
    assert refused(type="template", payload="x") == [("/payload", "WRONG_TYPE", "must be an object")]


def test_faults_beside_one_of_the_shape_keep_their_own_words() -> None:
    [kind, media] = refused(type="media", payload={"kind": "film", "media": {"id": ""}})
    assert kind[:2] == ("/payload/kind", "NOT_ALLOWED")
    assert kind[2].startswith("must be one of image, audio, video, document, sticker (for type media, ")
    assert media == ("/payload/media/id", "TOO_SHORT", "must have 1 or more characters")
