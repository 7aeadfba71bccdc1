"""What was just created was changed last when it was created (C2.1)."""

from datetime import timedelta
from typing import Any

import pytest
from tests.http.registering import NEW
from tests.http.template_drafts import new as new_template

from recado.domain.core.ids import MESSAGE, lowest_id


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/numbers", NEW),
        ("/v2/templates", None),
        ("/webhooks", {"url": "https://hooks.example.com/", "events": ["*"]}),
        ("/v2/companies", {"nome": "Loja"}),
        ("/v2/lists", {"name": "Clients"}),
        (
            "/v2/segments",
            {"name": "Tagged", "filters": [{"field": "tag", "operator": "is", "value": "VIP"}]},
        ),
        ("/contacts", {"phone": "+5511987654321"}),
        ("/v2/wallet/top-ups", {"coins": 5}),
    ],
)
async def test_a_new_record_was_not_changed_before_it_was_created(api: Any, path: str, body: Any) -> None:
    # As after a start: ids continue behind the newest of the process before, which may lie ahead of the clock.
    assert api.ids.continue_after(lowest_id(MESSAGE, api.clock.now() + timedelta(seconds=30)))

    made = await api.post(path, body or new_template(api))

    assert made.status in (200, 201), made.body
    moments = {made.body[name] for name in ("createdAt", "updatedAt", "paidAt") if name in made.body}
    assert len(moments) == 1, moments
