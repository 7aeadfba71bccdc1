"""A chat-app template's states, and what a provider's report of one means (C11.3)."""

from enum import StrEnum
from typing import Final

from recado.domain.core.machine import Machine


class TemplateStatus(StrEnum):
    """Only `approved` is sendable."""

    DRAFT = "draft"  # the customer submits it
    SUBMITTED = "submitted"  # on its way to the provider; retried on a timer, given up after five times
    PENDING = "pending"  # under review; the provider decides
    APPROVED = "approved"
    REJECTED = "rejected"  # the customer edits or submits it again
    PAUSED = "paused"  # low quality; the provider releases or disables it, or the customer edits it
    DISABLED = "disabled"  # terminal


class TemplateCategory(StrEnum):
    """What the template is for; marketing obeys quiet hours, authentication expires fast."""

    MARKETING = "marketing"
    UTILITY = "utility"
    AUTHENTICATION = "authentication"


class Language(StrEnum):
    """The languages that a template may have."""

    PT_BR = "pt-BR"
    EN_US = "en-US"
    ES_ES = "es-ES"


class TemplateEvent(StrEnum):
    """What happens to a template. The comments name who says so."""

    SUBMIT = "submit"  # customer
    TAKEN = "taken"  # provider took it for review
    REFUSED = "refused"  # provider refused the request
    UNREACHABLE = "unreachable"  # provider away; tried again
    GIVEN_UP = "given_up"  # provider away five times
    APPROVE = "approve"  # provider
    REJECT = "reject"  # provider
    PAUSE = "pause"  # provider
    RELEASE = "release"  # provider
    DISABLE = "disable"  # provider
    RECATEGORIZE = "recategorize"  # provider
    EDIT = "edit"  # customer


_S = TemplateStatus
_E = TemplateEvent

TEMPLATE_MACHINE: Final = Machine(
    "template",
    {
        (_S.DRAFT, _E.EDIT): _S.DRAFT,
        (_S.DRAFT, _E.SUBMIT): _S.SUBMITTED,
        (_S.SUBMITTED, _E.TAKEN): _S.PENDING,
        (_S.SUBMITTED, _E.REFUSED): _S.REJECTED,
        (_S.SUBMITTED, _E.UNREACHABLE): _S.SUBMITTED,
        (_S.SUBMITTED, _E.GIVEN_UP): _S.DRAFT,
        (_S.PENDING, _E.APPROVE): _S.APPROVED,
        (_S.PENDING, _E.REJECT): _S.REJECTED,
        (_S.PENDING, _E.DISABLE): _S.DISABLED,
        (_S.APPROVED, _E.PAUSE): _S.PAUSED,
        (_S.APPROVED, _E.DISABLE): _S.DISABLED,
        (_S.APPROVED, _E.RECATEGORIZE): _S.APPROVED,
        (_S.APPROVED, _E.EDIT): _S.DRAFT,
        (_S.PAUSED, _E.RELEASE): _S.APPROVED,
        (_S.PAUSED, _E.DISABLE): _S.DISABLED,
        (_S.PAUSED, _E.EDIT): _S.DRAFT,
        (_S.REJECTED, _E.SUBMIT): _S.SUBMITTED,
        (_S.REJECTED, _E.EDIT): _S.DRAFT,
    },
    initial={"created": _S.DRAFT},
)

CATEGORY_EDITABLE: Final = frozenset({TemplateStatus.DRAFT, TemplateStatus.REJECTED})

_REPORTED: dict[tuple[TemplateStatus, TemplateStatus], tuple[TemplateEvent, ...]] = {
    (_S.SUBMITTED, _S.PENDING): (_E.TAKEN,),
    # The review can end before the answer to the submission is recorded.
    (_S.SUBMITTED, _S.APPROVED): (_E.TAKEN, _E.APPROVE),
    (_S.SUBMITTED, _S.REJECTED): (_E.TAKEN, _E.REJECT),
    (_S.SUBMITTED, _S.DISABLED): (_E.TAKEN, _E.DISABLE),
    (_S.PENDING, _S.APPROVED): (_E.APPROVE,),
    (_S.PENDING, _S.REJECTED): (_E.REJECT,),
    (_S.PENDING, _S.DISABLED): (_E.DISABLE,),
    (_S.APPROVED, _S.PAUSED): (_E.PAUSE,),
    (_S.APPROVED, _S.DISABLED): (_E.DISABLE,),
    (_S.PAUSED, _S.APPROVED): (_E.RELEASE,),
    (_S.PAUSED, _S.DISABLED): (_E.DISABLE,),
}


def reported_events(status: TemplateStatus, reported: TemplateStatus) -> tuple[TemplateEvent, ...]:
    """The events that a provider's report of a status means now, in order; empty when it changes nothing."""
    return _REPORTED.get((status, reported), ())
