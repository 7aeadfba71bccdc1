"""Flows in the form of the hosted API (C19). Pure."""

from collections.abc import Mapping
from typing import Any, Final, get_args

import orjson

from recado.channels.chatapp import cloud_answers
from recado.channels.core.errors import ProviderError
from recado.channels.core.events import FlowState
from recado.channels.core.fields import object_in
from recado.channels.core.provider import FlowDefinition
from recado.channels.core.refusals import bounded_text

STATES_READ: Final[Mapping[str, FlowState]] = {state.upper(): state for state in get_args(FlowState)}


def definition(flow: FlowDefinition) -> dict[str, Any]:
    """The JSON that makes a draft; its content is a text in it."""
    return {
        "name": flow.name,
        "categories": list(flow.categories),
        "flow_json": orjson.dumps(flow.content).decode(),
    }


def made(answer: Mapping[str, Any]) -> str:
    """The id of the draft; raises `ProviderError`: refused, where the content has faults, which no draft may be
    published with.
    """
    faults = answer.get("validation_errors")
    if isinstance(faults, list) and faults:
        first = object_in(faults[0])
        said = [each for each in (first.get("message"), first.get("error")) if isinstance(each, str) and each]
        text = bounded_text(said[0], ()) if said else "the provider finds faults in it"
        raise ProviderError("refused", "provider_error", text)
    return cloud_answers.id_of(answer)
