"""Any body at all: never a server error, and a refusal changes nothing."""

import string
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from recado.http.routes.messages.message_models import CreateMessage

PHONE = "+5511987654321"


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from([PHONE, "text", "template", "interactive", "2027-01-01T00:00:00Z"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(string.ascii_letters, max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
_FIELDS = [field.alias or name for name, field in CreateMessage.model_fields.items()]
_BUTTONS = {"type": "button", "body": "x", "action": {"buttons": [{"id": "1", "title": "t"}]}}


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.dictionaries(st.sampled_from(_FIELDS), _JSON | st.just(...), max_size=4),
    free_form=st.none() | st.sampled_from([{"text": {"body": "x"}}, {"interactive": _BUTTONS}]),
    whole=st.none() | _JSON,
)
async def test_no_body_is_answered_with_a_server_error_and_what_is_refused_changes_nothing(
    mail: Any, changes: dict[str, Any], free_form: dict[str, Any] | None, whole: Any
) -> None:
    if free_form is not None:
        changes = {
            "type": next(iter(free_form)),
            "payload": free_form,
            "templateId": ...,
            "templateVars": ...,
            **changes,
        }
    before = await mail.stored()
    answer = await mail.api.post("/messages", mail.body(**changes) if whole is None else whole)
    assert answer.status in {201, 400, 403, 422}
    if answer.status != 201:
        assert answer.body["code"]
    assert await mail.stored() == before + (answer.status == 201)
