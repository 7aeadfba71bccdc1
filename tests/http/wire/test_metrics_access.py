"""Who may read the metrics (C34.1)."""

from typing import Any

import pytest

from recado.http.routes.ops.metrics import metrics_routes


class Figures:
    """Metrics of nothing."""

    def __init__(self) -> None:
        self.asked = 0

    async def text(self) -> bytes:
        self.asked += 1
        return b"recado_things 1.0\n"


async def test_without_a_token_this_machine_may(serve: Any) -> None:
    figures: Any = Figures()
    api = await serve(*metrics_routes(figures, token=None))
    async with api.client.get("/metrics") as answer:
        assert (answer.status, await answer.read()) == (200, b"recado_things 1.0\n")
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
async def test_a_proxy_on_this_machine_lets_nobody_in(serve: Any, header: str) -> None:
    figures: Any = Figures()
    api = await serve(*metrics_routes(figures, token=None))
    async with api.client.get("/metrics", headers={header: "127.0.0.1"}) as answer:
        body = await answer.json(content_type=None)
        assert (answer.status, body["code"]) == (401, "UNAUTHORIZED")
        assert "RECADO_METRICS_TOKEN" in body["detail"]
    assert figures.asked == 0


@pytest.mark.parametrize("given", [None, "Bearer wrong", "Basic abc", "Bearer ", "Bearer tóken"])
async def test_with_a_token_nobody_else_may(serve: Any, given: str | None) -> None:
    figures: Any = Figures()
    api = await serve(*metrics_routes(figures, token="s3cret-text"))
    api.client.headers.pop("Authorization")
    headers = {} if given is None else {"Authorization": given}
    async with api.client.get("/metrics", headers=headers) as answer:
        body = await answer.text()
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert "s3cret-text" not in body
    assert figures.asked == 0


async def test_with_a_token_whoever_shows_it_may_from_wherever(serve: Any) -> None:
    figures: Any = Figures()
    api = await serve(*metrics_routes(figures, token="the-token"))
    headers = {"Authorization": "Bearer the-token", "X-Forwarded-For": "203.0.113.7"}
    async with api.client.get("/metrics", headers=headers) as answer:
        assert answer.status == 200
