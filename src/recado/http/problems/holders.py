"""Who holds what a caller asks for, a value that is taken or a record: named only to who may read it (C12.1, C4.2)."""

from typing import Final

from recado.domain.core.errors import Problem
from recado.http.api.call import Call

# By the code of the refusal: the holder's name in `meta`, and the scope that reads it.
_HOLDERS: Final = {
    "PHONE_TAKEN": ("contactId", "contacts:read"),
    "EXTERNAL_ID_TAKEN": ("contactId", "contacts:read"),
    "LIST_NAME_TAKEN": ("listId", "contacts:read"),
    "SEGMENT_NAME_TAKEN": ("segmentId", "contacts:read"),
    "TEMPLATE_NAME_TAKEN": ("templateId", "templates:read"),
    "CNPJ_JA_CADASTRADO": ("companyId", "crm:read"),
    "EMAIL_TEMPLATE_NAME_TAKEN": ("templateId", "email:read"),
    "FLOW_NAME_TAKEN": ("flowId", "flows:read"),
    "SENDER_TAKEN": ("senderId", "email:read"),
    "NUMBER_TAKEN": ("numberId", "numbers:read"),
    "SOCIAL_ACCOUNT_TAKEN": ("socialAccountId", "social:read"),
    "SOCIAL_IDENTITY_TAKEN": ("contactId", "contacts:read"),
    "RESOURCE_IN_USE": ("journeyId", "campaigns:read"),
}


def hide_holder(problem: Problem, call: Call) -> None:
    """Take the holder out of a refusal when the caller may not read it."""
    if problem.code in _HOLDERS:
        name, scope = _HOLDERS[problem.code]
        if not call.can(scope):
            problem.meta = {key: value for key, value in problem.meta.items() if key != name}
