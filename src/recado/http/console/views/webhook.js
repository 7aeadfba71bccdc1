// One webhook subscription: its health, its deliveries, and delivering events once more (C23.1).
import { html, useState } from "../lib.js";
import { newKey, part, post } from "../api.js";
import { useGet, usePages } from "../load.js";
import { useLive } from "../live.js";
import { Badge, Facts, Page, Section } from "../parts/page.js";
import { Action } from "../parts/action.js";
import { Form, choices } from "../parts/form.js";
import { LiveState } from "../parts/live_state.js";
import { Loaded } from "../parts/states.js";
import { PagedTable } from "../parts/table.js";
import { Circuit } from "./providers.js";
import { SubscriptionStatus, backlog } from "./webhooks.js";
import { count, duration, milliseconds, share, time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/webhooks/:id";
export const title = "webhook.title";

const TONES = { delivered: "good", pending: "warn", dropped: "bad" };

export function render({ params }) {
  const address = `/webhooks/${part(params.id)}`;
  const read = useGet(address, {}, { every: 15 });
  const live = useLive();
  const [filters, setFilters] = useState({});
  const deliveries = usePages(`${address}/deliveries`, filters);
  const state = live.webhooks.get(params.id);
  return html`
    <${Page} title=${t("webhook.title")} back=${{ href: href("/webhooks"), text: t("webhooks.title") }}
      actions=${html`<${LiveState} live=${live} />`}>
      <${Loaded} from=${read}>${(one) => html`<${Health} one=${one} state=${state} />`}<//>
      <${Section} title=${t("webhook.deliveries")}>
        <${Form} inline label=${t("messages.search")} submit=${t("messages.search")} values=${filters}
          run=${async (values) => setFilters(values)} fields=${[
          { name: "status", label: t("field.status"), type: "select", options: choices("delivery", ["pending", "delivered", "dropped"]) },
          { name: "from", label: t("field.from"), type: "datetime-local" },
          { name: "to", label: t("field.to"), type: "datetime-local" },
        ]} />
        <${PagedTable} from=${deliveries} label=${t("webhook.deliveries")} empty=${t("webhook.noDeliveries")}
          columns=${COLUMNS(params.id, address, deliveries.reload)} />
      <//>
      <${Replay} address=${address} done=${deliveries.reload} />
    <//>
  `;
}

const COLUMNS = (id, address, reload) => [
  { name: t("webhook.event"), cell: (each) => html`<a href=${href(`/webhooks/${id}/deliveries/${each.id}`)}>${each.event}</a>` },
  { name: t("field.status"), cell: (each) => html`<${DeliveryStatus} status=${each.status} />` },
  { name: t("webhook.attempts"), number: true, cell: (each) => count(each.attemptCount) },
  { name: t("webhook.lastAnswer"), wide: true, cell: (each) => each.lastStatusCode ?? each.lastError },
  { name: t("field.message"), cell: (each) => each.messageId && html`<a href=${href(`/messages/${each.messageId}`)}>${each.messageId}</a>` },
  { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
  { name: t("webhook.nextAttempt"), cell: (each) => time(each.nextAttemptAt) },
  { name: t("webhook.replay"), cell: (each) => each.status !== "pending" && html`
    <${ReplayOne} address=${address} delivery=${each} done=${reload} />` },
];

export function ReplayOne({ address, delivery, done }) {
  const [key, setKey] = useState(newKey);
  const after = (made) => {
    setKey(newKey());
    done(made);
  };
  return html`<${Action} scope="webhooks:write" label=${t("webhook.replay")} describe=${t("webhook.replayOf", { event: delivery.event, id: delivery.id })}
    run=${() => post(`${address}/deliveries/${part(delivery.id)}/replay`, undefined, { key })} done=${after}
    confirm=${{ title: t("webhook.replayTitle"), text: t("webhook.replayText", { event: delivery.event }) }} />`;
}

export function DeliveryStatus({ status }) {
  return html`<${Badge} tone=${TONES[status]}>${word("delivery", status)}<//>`;
}

function Health({ one, state }) {
  return html`
    <p><${SubscriptionStatus} status=${one.status} /> <code>${one.url}</code></p>
    <${Facts} rows=${[
      [t("webhook.description"), one.description],
      [t("webhook.events"), one.events.join(", ")],
      [t("field.circuit"), state && html`<${Circuit} state=${state.circuit} />`],
      [t("field.backlog"), state && backlog(state.backlog)],
      [t("field.oldest"), state && duration(state.oldestAgeSeconds)],
      [t("field.success"), state && share(state.successRate)],
      ["p50 / p95", state && `${milliseconds(state.p50Ms)} / ${milliseconds(state.p95Ms)}`],
      [t("webhook.failures"), count(one.consecutiveFailures)],
      [t("webhook.lastSuccess"), time(one.lastSuccessAt)],
      [t("webhook.lastFailure"), time(one.lastFailureAt)],
      [t("field.id"), html`<code>${one.id}</code>`],
    ]} />
  `;
}

/** The events of a period once more: by default those that never arrived. */
function Replay({ address, done }) {
  const [queued, setQueued] = useState(null);
  const [key, setKey] = useState(newKey);
  const run = ({ from, to, onlyFailed }) => post(`${address}/replay`, { from, to, onlyFailed }, { key });
  const after = (answer) => {
    setQueued(answer.queued);
    setKey(newKey());
    done();
  };
  return html`
    <${Section} title=${t("webhook.replayPeriod")}>
      <p class="quiet">${t("webhook.replayPeriodText")}</p>
      <${Form} inline scope="webhooks:write" label=${t("webhook.replayPeriod")} submit=${t("webhook.replay")} values=${{ onlyFailed: true }}
        run=${run} done=${after} fields=${[
        { name: "from", label: t("field.from"), type: "datetime-local", required: true },
        { name: "to", label: t("field.to"), type: "datetime-local", required: true },
        { name: "onlyFailed", label: t("webhook.onlyFailed"), type: "checkbox" },
      ]} />
      ${queued !== null && html`<p role="status">${t("webhook.queued", { queued: count(queued) })}</p>`}
    <//>
  `;
}
