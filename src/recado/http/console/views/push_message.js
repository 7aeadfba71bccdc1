// One push message: what became of it on each platform, its devices, and its cancel (C22.3).
import { html, useRef } from "../lib.js";
import { part, post } from "../api.js";
import { useGet, usePages } from "../load.js";
import { Action } from "../parts/action.js";
import { Facts, Json, Page, Section } from "../parts/page.js";
import { Loaded } from "../parts/states.js";
import { PagedTable, Table } from "../parts/table.js";
import { State } from "../parts/tones.js";
import { coins, count, share, time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/push/messages/:id";
export const title = "push.message";

const ALL_OPT_IN = "all_opt_in";
const CANCELABLE = ["scheduled", "queued"];
const UNDER_WAY = [...CANCELABLE, "sending"];
const LOOK_EVERY = 5; // seconds

const METRICS = () => [
  { name: t("push.platform"), cell: (each) => (each.platform ? word("platform", each.platform) : t("push.all")) },
  { name: t("push.reach"), number: true, cell: (each) => count(each.reach) },
  { name: t("push.delivered"), number: true, cell: (each) => count(each.delivered) },
  { name: t("push.opened"), number: true, cell: (each) => count(each.opened) },
  { name: t("push.openRate"), number: true, cell: (each) => share(each.delivered ? each.opened / each.delivered : null) },
  { name: t("push.failed"), number: true, cell: (each) => count(each.failed) },
  { name: t("push.unregistered"), number: true, cell: (each) => count(each.unregistered) },
];

const DISPATCHES = () => [
  { name: t("push.device"), cell: (each) => html`<code>${each.deviceId}</code>` },
  { name: t("field.status"), cell: (each) => html`<${State} kind="dispatchStatus" value=${each.status} />` },
  { name: t("push.platform"), cell: (each) => word("platform", each.platform) },
  { name: t("push.openedAt"), cell: (each) => time(each.openedAt) },
  { name: t("push.dispatch"), cell: (each) => html`<code>${each.id}</code>` },
];

export function render({ params }) {
  const address = `/v2/push/messages/${part(params.id)}`;
  const latest = useRef("queued"); // once it is final, there is no more to come
  const push = useGet(address, {}, { every: () => (UNDER_WAY.includes(latest.current) ? LOOK_EVERY : undefined) });
  const status = push.data?.status;
  latest.current = status ?? latest.current;
  const dispatches = usePages(`${address}/dispatches`);
  const canceled = () => {
    push.reload();
    dispatches.reload();
  };
  return html`
    <${Page} title=${push.data?.title ?? params.id} back=${{ href: href("/push/messages"), text: t("push.title") }}
      actions=${CANCELABLE.includes(status) && html`
        <${Action} scope="push:send" label=${t("push.cancel")} danger run=${() => post(`${address}/cancel`)} done=${canceled}
          confirm=${{ title: t("push.cancel.title"), text: t("push.cancel.text", { reach: count(push.data.metrics.reach) }) }} />`}>
      <${Loaded} from=${push}>${(found) => html`
        <${Push} push=${found} />
        <${Section} title=${t("push.dispatches")}>
          <${PagedTable} from=${dispatches} label=${t("push.dispatches")} columns=${DISPATCHES()} empty=${t("push.dispatches.empty")} />
        <//>
      `}<//>
    <//>
  `;
}

function Push({ push }) {
  const sums = [{ id: "all", ...push.metrics }, ...Object.entries(push.breakdown).map(([platform, each]) => ({ id: platform, platform, ...each }))];
  return html`
    <p><${State} kind="pushStatus" value=${push.status} /></p>
    ${push.quietDeferredTo && push.status === "scheduled" && html`<p class="notice warn">${t("push.deferred")} ${time(push.quietDeferredTo)}</p>`}
    <${Section} title=${t("push.metrics")}>
      <p class="quiet">${t("push.metrics.about")}</p>
      <${Table} label=${t("push.metrics")} columns=${METRICS()} items=${sums} />
    <//>
    <${Section} title=${t("push.shows")}><${Content} push=${push} /><//>
    <${Section} title=${t("section.facts")}>
      <${Facts} rows=${[
        [t("field.id"), html`<code>${push.id}</code>`],
        [t("push.audience"), push.segment === undefined ? t("push.named") : push.segment === ALL_OPT_IN ? t("push.allOptIn") : html`<code>${push.segment}</code>`],
        [t("push.origin"), word("pushOrigin", push.origin)],
        [t("field.campaign"), push.campaignId && html`<a href=${href("/campaigns/one", { tag: push.campaignId })}>${push.campaignId}</a>`],
        [t("push.rateKind"), word("rateKind", push.rateKind)],
        [t("push.unitCoins"), coins(push.unitCoins)],
        [t("field.chargedCoins"), coins(push.chargedCoins)],
        [t("field.createdAt"), time(push.createdAt)],
        [t("field.scheduledAt"), push.scheduledAt && time(push.scheduledAt)],
        [t("field.startedAt"), push.startedAt && time(push.startedAt)],
        [t("field.finishedAt"), push.finishedAt && time(push.finishedAt)],
      ]} />
    <//>
  `;
}

/** As texts: neither its picture is loaded nor its links lead anywhere. */
function Content({ push }) {
  const { title: heading, body, imageUrl, deepLink, actions, data, metadata } = push;
  return html`
    ${heading || body
      ? html`<div class="bubble">
          <p class="part-header">${heading}</p>
          <p>${body}</p>
          ${actions.length > 0 && html`<ul>${actions.map(({ label, link }) => html`<li>${[label, link].filter(Boolean).join(" → ")}</li>`)}</ul>`}
        </div>`
      : html`<p>${t("push.silent")}</p>`}
    ${(deepLink || imageUrl) && html`<${Facts} rows=${[[t("push.deepLink"), deepLink], [t("push.imageUrl"), imageUrl]]} />`}
    ${(data || metadata) && html`<${Json} label=${t("push.data")} value=${{ data, metadata }} />`}
  `;
}
