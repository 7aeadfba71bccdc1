"""Bodies and views of suppressions (C10.5)."""

from recado.domain.email.suppression import SuppressionReason
from recado.http.api.models import ApiModel, Timestamp
from recado.http.api.paging import CountedPage, PageQuery
from recado.http.routes.core.emails import KnownEmail
from recado.http.routes.core.views import view_of
from recado.storage.email.suppressions import EmailSuppression


class SuppressionQuery(PageQuery):
    """Filters of GET /v2/email/suppressions."""

    email: KnownEmail | None = None


class SuppressionCreate(ApiModel):
    """An address that is to get no e-mail any more."""

    email: KnownEmail


class SuppressionOut(ApiModel):
    """A suppressed address, as it was given; masked once its contact was deleted."""

    id: str
    email: str
    reason: SuppressionReason
    created_at: Timestamp


class SuppressionPage(CountedPage[SuppressionOut]):
    """Suppressed addresses, newest first."""


suppression_view = view_of(EmailSuppression, SuppressionOut)
