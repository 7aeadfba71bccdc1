"""Models that are read from the parsed document take, and refuse, what they would from its text (C2.3)."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from recado.http.api.models import ApiModel
from recado.http.bodies.field_errors import from_body
from recado.http.routes.messages.message_models import CreateMessage
from recado.http.routes.rcs.rcs_models import CreateRcs
from recado.http.routes.sms.sms_models import CreateSms

MODELS = [CreateMessage, CreateSms, CreateRcs]
WORDS = [
    "", " ", "chatapp", "sms", "text", "template", "media", "critical", "normal", "bulk", " bulk ", "NORMAL", "premium",
    "otp", "num_1", "+5511987654321", "2026-12-01T00:00:00Z", "2026-12-01", "1", "true", "x" * 70,
]  # fmt: skip
VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, -1, 60, 604_800, 2**64 - 1, 0.0, 1.0, 60.5, 1e300, *WORDS]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "body", "link"]), inner),
    max_leaves=4,
)  # fmt: skip


def read(model: type[ApiModel], document: Any, *, by_text: bool) -> Any:
    """The fields, with the types of their values; or the errors as callers see them."""
    validator = model.__pydantic_validator__
    try:
        if by_text:
            found = validator.validate_json(orjson.dumps(document), by_alias=True, by_name=False)
        else:
            found = validator.validate_python(document, by_alias=True, by_name=False)
    except ValidationError as error:
        return from_body(error, document)
    return [(name, type(value), value) for name, value in found], found.model_fields_set


def documents(model: type[ApiModel]) -> st.SearchStrategy[Any]:
    names = [field.alias or name for name, field in model.model_fields.items()]
    return st.dictionaries(st.sampled_from(names), VALUES) | VALUES


def test_these_are_all_models_that_are_read_so() -> None:
    kinds, seen = [ApiModel], set()
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if kind.reads_document:
            seen.add(kind)
    assert seen == set(MODELS)


@pytest.mark.parametrize("model", MODELS)
@given(data=st.data())
def test_a_document_is_taken_or_refused_as_its_text_is(model: type[ApiModel], data: st.DataObject) -> None:
    document = data.draw(documents(model))
    assert read(model, document, by_text=False) == read(model, document, by_text=True)


@pytest.mark.parametrize("model", MODELS)
def test_each_field_takes_each_value_as_in_a_text(model: type[ApiModel]) -> None:
    whole: dict[str, Any] = {"type": "text", "payload": {"text": {"body": "b"}}, "text": "b", "to": "+5511987654321"}
    for name, field in model.model_fields.items():
        for value in (None, True, 0, 60, 60.0, 2**64 - 1, [], ["a", 1], {}, {"a": {"b": [1]}}, *WORDS):
            document = {**whole, field.alias or name: value}
            assert read(model, document, by_text=False) == read(model, document, by_text=True), document
