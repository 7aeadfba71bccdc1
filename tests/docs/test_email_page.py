"""What docs/email.md shows is so."""

import re
from pathlib import Path

import orjson
from pydantic import BaseModel

from recado.config.settings import Settings
from recado.http.routes.email.message_models import CreateEmail
from recado.http.routes.email.sender_models import EmailSenderCreate
from recado.http.routes.email.suppression_models import SuppressionCreate
from recado.http.routes.email.template_models import EmailPreview, EmailTemplateCreate

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "email.md").read_text("utf-8")
BODIES: dict[str, type[BaseModel]] = {
    "/v2/email/messages": CreateEmail,
    "/v2/email/templates": EmailTemplateCreate,
    "/v2/email/templates/$MAIL_TEMPLATE/preview": EmailPreview,
    "/v2/email/senders": EmailSenderCreate,
    "/v2/email/suppressions": SuppressionCreate,
}


def test_each_body_is_taken() -> None:
    shown = re.findall(r"api (\S+) -d '(\{.*?\})'", PAGE, re.DOTALL)
    assert {path for path, _ in shown} == set(BODIES)
    for path, text in shown:
        given = orjson.loads(text)
        body = BODIES[path].model_validate_json(text)
        assert body.model_dump(mode="json", by_alias=True, exclude_unset=True) == given


def test_calls_on_all_pages_name_their_path_first() -> None:
    """`api` puts what it is given first behind the address of the service."""
    wrong = [(page.name, line) for page in DOCS.glob("*.md") for line in page.read_text("utf-8").splitlines()
             if re.search(r"(^|\()api -", line)]  # fmt: skip
    assert wrong == []


def test_each_setting_that_is_named_is_one() -> None:
    named = set(re.findall(r"RECADO_([A-Z_]+)", PAGE))
    assert {name.lower() for name in named} <= set(Settings.model_fields)
    assert {"ADAPTER_EMAIL", "SMTP_URL", "SES_TOPIC", "DKIM_KEY"} <= named
