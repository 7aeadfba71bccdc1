"""10,000 numbers in the console: how soon they are there, and what a second of news costs the page (C34.3)."""

import asyncio
from typing import Any

import pytest
from tests.acceptance.console.conftest import CHROMIUM, Shown, console

pytestmark = [
    pytest.mark.alone,
    pytest.mark.browser,
    pytest.mark.long,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is not installed"),
]

FIRST_ROWS = 1_000.0  # ms from the beginning of the navigation
TICK = 16.0  # ms that the page's thread works for each second of news
TICKS = 10
LOADS = 3  # of which one is in time: what the page does happens each time, what a busy machine does not

# Answers the page in place of the server, so that only the page is measured: 10,000 numbers, of which the stream tells
# of the first thousand, all of them changed, once a second.
SERVED = """
(() => {
    const real = window.fetch;
    const text = new TextEncoder();
    const number = (index, tick) => ({
        organizationId: "org_0", env: "test", numberId: `num_${String(index).padStart(21, "0")}`,
        displayPhone: `+55*******${String(index).padStart(4, "0")}`, status: "connected", qualityRating: "green",
        messagingTier: "unlimited", actor: {state: "running", restarts: 0},
        rate: {perSecond: 80, tokens: 4.5, sentLastSecond: (index + tick) % 80, sentLastMinute: 60 * (index % 80)},
        day: {used: 5 * index + tick, limit: 100000}, tier: {used: null, limit: null},
        queue: {critical: 0, normal: index < 1000 ? (index * 7 + tick * 13) % 500 : 0, bulk: 0, scheduled: 0},
        oldestAgeSeconds: 3, inFlight: 2, uncertain: 0, errorRate5m: index % 97 ? 0 : 0.2, lastErrors: {},
        breaker: "closed",
    });
    const some = (count, tick) => Array.from({length: count}, (_, index) => number(index, tick));
    const event = (kind, items, whole) => `event: ${kind}\\ndata: ${JSON.stringify({items, gone: [], whole})}\\n\\n`;
    const sums = {numbers: 10000, sentLastSecond: 900, sentLastMinute: 54000, due: 7, scheduled: 0, inFlight: 9};
    const looks = Array.from({length: 8}, (_, tick) => text.encode(
        event("numbers", some(1000, tick), tick === 0) + event("throughput", [{...sums, due: tick}], tick === 0)));
    const whole = JSON.stringify({items: some(10000, 0)});
    window.ticks = 0;
    window.fetch = async (address, options) => {
        const path = String(address).split("?")[0];
        if (path === "/v2/ops/numbers") return new Response(whole);
        if (path !== "/v2/ops/stream") return real(address, options);
        let timer;
        return new Response(new ReadableStream({
            start(stream) {
                stream.enqueue(looks[0]);
                timer = setInterval(() => {
                    window.ticks += 1;
                    stream.enqueue(looks[1 + window.ticks % 7]);
                }, 1000);
            },
            cancel() { clearInterval(timer); },
        }));
    };
    new MutationObserver((_, observer) => {
        if (document.querySelectorAll(".rows tbody tr").length < 10) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => { window.shownAt = performance.now() - window.madeIn; }));
    }).observe(document, {childList: true, subtree: true});
})();
"""
TIMED = f"const begun = performance.now(); {SERVED} window.madeIn = performance.now() - begun;"


async def test_ten_thousand_numbers_are_there_within_a_second_and_each_second_of_news_fits_a_frame(
    shown: Shown,
) -> None:
    first, tick, rows = await asyncio.to_thread(_measure, shown)
    print(f"first rows after {first:.0f} ms, a second of news {tick:.1f} ms, {rows} rows made")
    assert rows < 100
    assert first < FIRST_ROWS
    assert tick < TICK


def _measure(shown: Shown) -> tuple[float, float, int]:
    with console(shown, viewport={"width": 1280, "height": 900}) as visit:
        page = visit.page
        page.add_init_script(TIMED)
        for _ in range(LOADS):
            page.reload()
            page.wait_for_function("() => window.shownAt > 0")
            page.get_by_text("10,000 shown").first.wait_for()
            if page.evaluate("window.shownAt") < FIRST_ROWS:
                break
        devtools = page.context.new_cdp_session(page)
        devtools.send("Performance.enable", {"timeDomain": "threadTicks"})  # others may use the processor as well
        page.wait_for_function("() => window.ticks >= 2")
        before, ticks = _busy(devtools), page.evaluate("window.ticks")
        page.wait_for_function("least => window.ticks >= least", arg=ticks + TICKS, polling=1_000)
        after, passed = _busy(devtools), page.evaluate("window.ticks") - ticks
        rows = page.locator(".rows tbody tr").count()
        return page.evaluate("window.shownAt"), 1_000 * (after - before) / passed, rows


def _busy(devtools: Any) -> float:
    """Seconds that the page's thread was busy so far: scripts, styles and layout."""
    metrics = {each["name"]: each["value"] for each in devtools.send("Performance.getMetrics")["metrics"]}
    return float(metrics["ScriptDuration"] + metrics["LayoutDuration"] + metrics["RecalcStyleDuration"])
