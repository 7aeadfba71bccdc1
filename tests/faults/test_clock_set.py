"""A service whose machine's clock is set by an hour, forward and back, while it runs."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.faults.clock_shim import ClockShim
from tests.program import Api, running
from tests.waiting import until

from recado.domain.core.ids import created_at

HOUR = 3_600

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="the shim is compiled here")


async def sent(api: Api, message_id: str) -> bool:
    return (await api.call("GET", f"/messages/{message_id}"))["status"] in ("sent", "delivered", "read")


@pytest.mark.long
async def test_nothing_ages_leaves_early_or_falls_behind(tmp_path: Path) -> None:
    shim = ClockShim(tmp_path)
    async with running(shim.service(tmp_path)) as service, Api(service.url, service.key("test")) as api:
        number = (await api.number("clock"))["id"]
        template = await approved(api, number)
        in_half_an_hour = (datetime.now(UTC) + timedelta(minutes=30)).isoformat()
        scheduled = await send(api, number, template, scheduledAt=in_half_an_hour)
        await api.call("POST", f"/v2/sandbox/numbers/{number}", {"status": "flagged"})
        waiting = await send(
            api, number, template, ttlSeconds=900
        )  # of which a set clock takes nothing, however long this takes

        shim.set_ahead(HOUR)
        await until(lambda: "clock_was_set" in service.log.read_text(), "the service has seen that its clock was set")
        during = await send(api, number, template)
        for each in (scheduled, waiting, during):
            assert (await api.call("GET", f"/messages/{each}"))["status"] == "queued"

        shim.set_ahead(-HOUR)
        await api.call("POST", f"/v2/sandbox/numbers/{number}", {"status": "connected"})
        after = await send(api, number, template)
        assert waiting < during < after
        assert created_at(after) - created_at(waiting) < timedelta(minutes=10)
        for each in (waiting, during, after):
            await until(lambda each=each: sent(api, each), "the message is sent")
        assert (await api.call("GET", f"/messages/{scheduled}"))["status"] == "queued"


async def approved(api: Api, number: str) -> str:
    draft = {
        "numberId": number, "name": "clock", "language": "pt-BR", "category": "utility",
        "components": [{"type": "BODY", "payload": {"text": "Hi {{1}}.", "example": ["Ana"]}}],
    }  # fmt: skip
    template_id = str((await api.call("POST", "/v2/templates", draft))["id"])
    await api.call("POST", f"/v2/sandbox/templates/{template_id}", {"status": "approved"})
    return template_id


async def send(api: Api, number: str, template: str, **more: Any) -> str:
    message = {
        "numberId": number, "to": "+5511987650001", "type": "template", "templateId": template, "templateVars": ["Ana"]
    }  # fmt: skip
    return str((await api.call("POST", "/messages", message | more))["id"])
