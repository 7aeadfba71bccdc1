// Webhook subscriptions and how their deliveries fare (C23, C34.1).
import { html } from "../lib.js";
import { usePages } from "../load.js";
import { useLive } from "../live.js";
import { Badge, Page } from "../parts/page.js";
import { LiveState } from "../parts/live_state.js";
import { PagedTable } from "../parts/table.js";
import { Circuit } from "./providers.js";
import { count, duration, milliseconds, share } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/webhooks";
export const title = "webhooks.title";

const TONES = { active: "good", paused: "warn", failing: "bad", revoked: "bad" };

const COLUMNS = (states) => {
  const of = (each) => states.get(each.id) ?? {};
  return [
    { name: t("webhook.subscription"), cell: (each) => html`<a href=${href(`/webhooks/${each.id}`)}>${each.url}</a>` },
    { name: t("field.status"), cell: (each) => html`<${SubscriptionStatus} status=${each.status} />` },
    { name: t("field.circuit"), cell: (each) => of(each).circuit && html`<${Circuit} state=${of(each).circuit} />` },
    { name: t("field.backlog"), number: true, cell: (each) => backlog(of(each).backlog) },
    { name: t("field.oldest"), number: true, cell: (each) => duration(of(each).oldestAgeSeconds) },
    { name: t("field.inFlight"), number: true, cell: (each) => count(of(each).inFlight) },
    { name: t("field.success"), number: true, cell: (each) => share(of(each).successRate) },
    { name: "p50", number: true, cell: (each) => milliseconds(of(each).p50Ms) },
    { name: "p95", number: true, cell: (each) => milliseconds(of(each).p95Ms) },
  ];
};

export function render() {
  const live = useLive();
  const subscriptions = usePages("/webhooks");
  return html`
    <${Page} title=${t(title)} actions=${html`<${LiveState} live=${live} />`}>
      <${PagedTable} from=${subscriptions} label=${t(title)} columns=${COLUMNS(live.webhooks)} empty=${t("webhooks.empty")} />
    <//>
  `;
}

export function SubscriptionStatus({ status }) {
  return html`<${Badge} tone=${TONES[status]}>${word("subscription", status)}<//>`;
}

/** Counted up to 10,001. */
export function backlog(value) {
  return value > 10_000 ? t("webhook.many") : count(value);
}
