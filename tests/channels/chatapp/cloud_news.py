"""News of templates, numbers and accounts of the hosted API as their JSON, and the events that they are read as."""

from typing import Any, get_args

from tests.channels.chatapp.cloud_changes import AT, SECONDS, change, flow, number, preference, template

from recado.channels.core.events import Event, FlowNews, FlowState, NumberNews, Preference, TemplateVerdict

NEWS: list[tuple[dict[str, Any], list[Event]]] = [
    (
        template("message_template_status_update", event="APPROVED", reason="NONE"),
        [TemplateVerdict("approved", AT, "594425479261596", business_account="waba-1", name="ola")],
    ),
    (
        template(
            "message_template_status_update",
            event="APPROVED",
            message_template_name="ola",
            message_template_language="pt_BR",
            message_template_category="MARKETING",
        ),
        [
            TemplateVerdict(
                "approved",
                AT,
                "594425479261596",
                category="marketing",
                business_account="waba-1",
                name="ola",
                language="pt-BR",
            )
        ],
    ),
    (
        template("message_template_status_update", event="REJECTED", reason="INCORRECT_CATEGORY"),
        [
            TemplateVerdict(
                "rejected", AT, "594425479261596", reason="INCORRECT_CATEGORY", business_account="waba-1", name="ola"
            )
        ],
    ),
    (
        template("message_template_status_update", event="PAUSED", reason=None, other_info={"title": "FIRST_PAUSE"}),
        [TemplateVerdict("paused", AT, "594425479261596", business_account="waba-1", name="ola")],
    ),
    (
        template("message_template_status_update", event="DISABLED"),
        [TemplateVerdict("disabled", AT, "594425479261596", business_account="waba-1", name="ola")],
    ),
    (template("message_template_status_update", event="FLAGGED"), []),
    (
        template("message_template_status_update", event="ARCHIVED"),
        [TemplateVerdict("paused", AT, "594425479261596", business_account="waba-1", name="ola")],
    ),
    (
        template("message_template_status_update", event="UNARCHIVED"),
        [TemplateVerdict("approved", AT, "594425479261596", business_account="waba-1", name="ola")],
    ),
    (
        template("template_category_update", previous_category="UTILITY", new_category="MARKETING"),
        [TemplateVerdict(None, AT, "594425479261596", category="marketing", business_account="waba-1")],
    ),
    (template("template_category_update", new_category="UTILITY", correct_category="MARKETING"), []),
    (template("message_template_quality_update", previous_quality_score="GREEN", new_quality_score="RED"), []),
    (
        number("phone_number_quality_update", event="FLAGGED", current_limit="TIER_1K"),
        [NumberNews(None, AT, "flagged", tier="tier_1k", business_account="waba-1", phone="5511900000000")],
    ),
    (
        number("phone_number_quality_update", event="UNFLAGGED", current_limit="TIER_NOT_SET"),
        [NumberNews(None, AT, "connected", business_account="waba-1", phone="5511900000000")],
    ),
    (
        number(
            "phone_number_quality_update",
            event="UPGRADE",
            current_limit="TIER_1K",
            max_daily_conversations_per_business="TIER_10K",
        ),
        [NumberNews(None, AT, tier="tier_10k", business_account="waba-1", phone="5511900000000")],
    ),
    (
        number("phone_number_quality_update", event="THROUGHPUT_UPGRADE", current_limit="TIER_UNLIMITED"),
        [NumberNews(None, AT, business_account="waba-1", phone="5511900000000")],
    ),
    (
        number("phone_number_name_update", decision="APPROVED", requested_verified_name="Padaria"),
        [NumberNews(None, AT, name_status="approved", business_account="waba-1", phone="5511900000000")],
    ),
    (
        change("account_update", {"event": "PARTNER_REMOVED", "waba_info": {"waba_id": "9", "owner_business_id": "8"}}),
        [NumberNews(None, AT, partner_removed="PARTNER_REMOVED", business_account="9")],
    ),
    (
        change("account_update", {"event": "PARTNER_APP_UNINSTALLED", "phone_number": "5511900000000"}),
        [
            NumberNews(
                None,
                AT,
                partner_removed="PARTNER_APP_UNINSTALLED",
                business_account="waba-1",
                phone="5511900000000",
            )
        ],
    ),
    (
        change("account_update", {"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "DISABLE"}}),
        [NumberNews(None, AT, "disconnected", business_account="waba-1")],
    ),
    (change("account_update", {"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "REINSTATE"}}), []),
    (change("account_update", {"event": "PARTNER_ADDED"}), []),
    (preference(), [Preference("pn-1", "5511987654321", True, AT)]),
    (preference(value="resume", timestamp=str(SECONDS)), [Preference("pn-1", "5511987654321", False, AT)]),
    (preference(wa_id=None, user_id="BR.77"), [Preference("pn-1", "BR.77", True, AT)]),
    (preference(value="signup"), []),
    (preference(category="other"), []),
    *(
        (flow(old_status="PUBLISHED", new_status=state.upper()), [FlowNews(state, AT, "6627390910", None, "waba-1")])
        for state in get_args(FlowState)
    ),
    (flow(old_status="PUBLISHED", new_status="DRAFT"), []),
    (flow(event="FLOW_VERSION_EXPIRY_WARNING", warning="soon"), []),
    (change("never_heard_of", 7), []),
]
