"""For each alert: series with which it fires, and the same in health. `$` stands for what Prometheus adds itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.deploy.promtool import INSTANCE, SCRAPED

_BY_INSTANCE = {"instance": INSTANCE}


@dataclass(frozen=True, slots=True)
class Case:
    """`series`: by name and labels the values in trouble and those in health, a minute apart.

    `fires`: when it does, after `waits`, when it did not yet (empty: it does at once); `labels`: what it is about.
    """

    alert: str
    series: Mapping[str, tuple[str, str]]
    fires: str
    waits: str = ""
    labels: Mapping[str, str] = field(default_factory=lambda: SCRAPED)


def _slow(metric: str, labels: str, fast: str, slow: str) -> dict[str, tuple[str, str]]:
    """A histogram of sixty a minute: all above the bound `slow`, or all below `fast`."""
    return {
        f'{metric}_bucket{{$,{labels}le="{fast}"}}': ("0x30", "0+60x30"),
        f'{metric}_bucket{{$,{labels}le="{slow}"}}': ("0+60x30", "0+60x30"),
        f'{metric}_bucket{{$,{labels}le="+Inf"}}': ("0+60x30", "0+60x30"),
    }


CASES = (
    Case("RecadoDown", {"up{$}": ("0x10", "1x10")}, "1m", "0m"),
    Case("RecadoDown", {'up{instance="x",job="another"}': ("1x10", "1x10"), "up{$}": ("_x10", "1x10")},
         "1m", "0m", {"job": "recado"}),
    Case("RecadoDown", {"recado_database_answers{$}": ("0x10", "1x10"), "up{$}": ("1x10", "1x10")}, "1m", "0m"),
    Case("RecadoRequestsFail", {
        'recado_http_requests_total{$,method="POST",route="/messages",status="2xx"}': ("0+1000x30", "0+1000x30"),
        'recado_http_requests_total{$,method="GET",route="/messages",status="5xx"}': ("0+11x30", "0+9x30"),
    }, "10m", "5m", _BY_INSTANCE),
    Case("RecadoRequestsSlow", _slow("recado_http_request_seconds", 'method="GET",route="/messages",', "1.0", "2.5"),
         "15m", "10m", _BY_INSTANCE),
    Case("RecadoEventLoopLate", _slow("recado_event_loop_lag_seconds", "", "0.1", "0.25"), "15m", "10m", _BY_INSTANCE),
    Case("RecadoActorsRestart", {'recado_restarts_total{$,kind="Lane"}': ("0+1x20", "0x10 1x10")},
         "15m", "", {**_BY_INSTANCE, "kind": "Lane"}),
    Case("RecadoFrontsMissing", {"recado_fronts{$}": ("2x10", "3 2 3x8"), "recado_fronts_wanted{$}": ("3x10", "3x10")},
         "2m", "1m"),
    Case("RecadoFrontsMissing", {"recado_fronts{$}": ("0x10", "0x10"), "recado_fronts_wanted{$}": ("1x10", "0x10")},
         "2m", "1m"),
    Case("RecadoOwnerDied", {"recado_owner_restarts_total{$}": ("0 0 1x20", "2x22")}, "3m", "1m"),
    Case("RecadoCommitsSlow", _slow("recado_batch_commit_seconds", 'batch="accept",', "0.5", "1.0"),
         "15m", "10m", {**_BY_INSTANCE, "batch": "accept"}),
    Case("RecadoDatabasePlacesTaken", {
        'recado_database_places{$,pool="requests"}': ("16x20", "16x20"),
        'recado_database_places_taken{$,pool="requests"}': ("16x20", "16x4 15 16x4 15 16x4"),
    }, "5m", "4m", {**SCRAPED, "pool": "requests"}),
    Case("RecadoNothingLeaves", {
        'recado_queue_messages{$,channel="sms",class="normal",reason="ready"}': ("7x30", "7x30"),
        'recado_messages_sent_total{$,channel="sms"}': ("5x30", "5+1x30"),
    }, "10m", "9m", {**_BY_INSTANCE, "channel": "sms"}),
    Case("RecadoNothingLeaves", {
        'recado_queue_messages{$,channel="sms",class="normal",reason="ready"}': ("7x30", "0x30"),
        'recado_queue_messages{$,channel="sms",class="bulk",reason="owner_paused"}': ("7x30", "7x30"),
    }, "10m", "9m", {**_BY_INSTANCE, "channel": "sms"}),
    Case("RecadoCriticalMessagesWait", {
        'recado_queue_oldest_seconds{$,channel="chatapp",class="critical"}': ("61+60x10", "59x10"),
        'recado_queue_oldest_seconds{$,channel="chatapp",class="bulk"}': ("61+60x10", "61+60x10"),
    }, "2m", "1m", {**SCRAPED, "channel": "chatapp", "class": "critical"}),
    Case("RecadoMessagesFail", {
        'recado_messages_sent_total{$,channel="chatapp"}': ("0+100x30", "0+100x30"),
        'recado_messages_failed_total{$,channel="chatapp",code="provider_error"}': ("0+6x30", "0+4x30"),
        'recado_messages_failed_total{$,channel="chatapp",code="recipient_unreachable"}': ("0+50x30", "0+50x30"),
    }, "11m", "10m", {**_BY_INSTANCE, "channel": "chatapp"}),
    Case("RecadoMessagesFail", {
        'recado_messages_failed_total{$,channel="sms",code="carrier_rejected"}': ("0+6x30", "0x30"),
    }, "11m", "10m", {**_BY_INSTANCE, "channel": "sms"}),
    Case("RecadoWalletRefuses", {"recado_wallet_holds_refused_total{$}": ("0 1x10", "1x10")}, "5m"),
    Case("RecadoGatewayUnreachable", {
        'recado_gateway_circuits_open{$,channel="sms",env="live",gateway="gateway_a"}': ("1x10", "0x10"),
        'recado_gateway_circuits_open{$,channel="sms",env="test",gateway="gateway_a"}': ("1x10", "1x10"),
        'recado_gateway_circuits_open{$,channel="push",env="live",gateway="fcm"}': ("1x10", "1x10"),
    }, "1m", "0m", {**SCRAPED, "channel": "sms", "env": "live", "gateway": "gateway_a"}),
    Case("RecadoNumbersUnreachable", {
        'recado_gateway_circuits_open{$,channel="chatapp",env="live",gateway="own"}': ("3x10", "0x10"),
    }, "5m", "4m", {**SCRAPED, "channel": "chatapp", "env": "live", "gateway": "own"}),
    Case("RecadoNumbersUnreachable", {
        'recado_gateway_circuits_open{$,channel="push",env="live",gateway="fcm"}': ("1x10", "0x10"),
    }, "5m", "4m", {**SCRAPED, "channel": "push", "env": "live", "gateway": "fcm"}),
    Case("RecadoCallbacksWait", {"recado_callbacks_waiting{$}": ("1001x20", "1000x20")}, "10m", "9m"),
    Case("RecadoCallbacksPostponed", {"recado_callbacks_postponed{$}": ("1x20", "1x4 0x4 1x4")}, "10m", "9m"),
    Case("RecadoWebhooksFail", {
        'recado_webhook_attempts_total{$,outcome="delivered"}': ("0+10x30", "0+10x30"),
        'recado_webhook_attempts_total{$,outcome="failed"}': ("0+11x30", "0+9x30"),
    }, "16m", "15m", _BY_INSTANCE),
    Case("RecadoCellAway", {
        'recado_entry_cell_away{$,cell="a",part="database"}': ("0x10", "0x10"),
        'recado_entry_cell_away{$,cell="a",part="service"}': ("1x10", "1 0 1 0x7"),
        'recado_entry_cell_away{$,cell="b",part="service"}': ("0x10", "0x10"),
    }, "2m", "1m", {**_BY_INSTANCE, "cell": "a"}),
    Case("RecadoMapAway", {"recado_entry_map_away{$}": ("1x10", "1 0 1 0x7")}, "2m", "1m"),
    Case("RecadoWebhooksBehind", {"recado_webhook_backlog{$}": ("10000+10x30", "30000-10x30")}, "16m", "15m"),
)  # fmt: skip
