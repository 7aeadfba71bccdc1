"""Flows that the buttons of a template open: here by our id, at the provider by its own (C11.2, C19)."""

from collections.abc import Mapping
from typing import Any

from recado.domain.core.errors import FieldError
from recado.domain.core.ids import FLOW, is_id
from recado.domain.flows.flow import FlowStatus
from recado.storage.core.statements.rows import Executor
from recado.storage.flows import flows
from recado.storage.templates.templates import Components, Template


async def as_there(executor: Executor, template: Template) -> tuple[Components, list[FieldError]]:
    """The components of a template that keeps the other rules, with the provider's ids of flows in place of ours.

    A fault for each button whose flow is no active one of the template's number. An id of another form is the
    provider's own, as a sync brings it.
    """
    components: list[Mapping[str, Any]] = []
    faults: list[FieldError] = []
    for place, component in enumerate(template.components):
        payload = component.get("payload")
        buttons = payload.get("buttons") if isinstance(payload, Mapping) else None
        if not isinstance(payload, Mapping) or not isinstance(buttons, list | tuple):
            components.append(component)
            continue
        told = []
        for index, button in enumerate(buttons):
            flow_id = button.get("flowId") if isinstance(button, Mapping) else None
            if not isinstance(flow_id, str) or not is_id(FLOW, flow_id):
                told.append(button)
                continue
            flow = await flows.sendable(executor, template.organization_id, template.env, flow_id)
            if flow is None or flow.number_id != template.number_id or flow.status is not FlowStatus.ACTIVE:
                path = f"/components/{place}/payload/buttons/{index}/flowId"
                faults.append(
                    FieldError(path, "NOT_FOUND", "The button needs an active flow of the template's number.")
                )
                continue
            told.append({**button, "flowId": flow.provider_flow_id})
        components.append({**component, "payload": {**payload, "buttons": told}})
    return tuple(components), faults
