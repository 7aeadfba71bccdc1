// One batch: how far it is, whom it left out, and its pause, resume, cancel and resend (C15.5).
import { html } from "../lib.js";
import { part, post } from "../api.js";
import { useGet } from "../load.js";
import { Action } from "../parts/action.js";
import { Facts, Page, Section } from "../parts/page.js";
import { Totals } from "../parts/progress.js";
import { Resend } from "../parts/resend.js";
import { Loaded } from "../parts/states.js";
import { State } from "../parts/tones.js";
import { coins, count, time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/batches/:id";
export const title = "batches.batch";

const MOVING = ["building", "running"];
const LOOK_EVERY = 5; // seconds

export function render({ params }) {
  const batch = useGet(`/v2/batches/${part(params.id)}`, {}, { every: LOOK_EVERY });
  return html`
    <${Page} title=${batch.data?.name ?? params.id} back=${{ href: href("/batches"), text: t("batches.title") }}
      actions=${batch.data && html`<${Moves} batch=${batch.data} done=${batch.reload} />`}>
      <${Loaded} from=${batch}>${(found) => html`<${Batch} batch=${found} />`}<//>
    <//>
  `;
}

function Moves({ batch, done }) {
  const move = (to) => () => post(`/v2/batches/${part(batch.id)}/${to}`);
  const moving = MOVING.includes(batch.status);
  const paused = batch.status === "paused";
  return html`
    ${moving && html`<${Action} scope="messages:send" label=${t("action.pause")} run=${move("pause")} done=${done} />`}
    ${paused && html`<${Action} scope="messages:send" label=${t("action.resume")} run=${move("resume")} done=${done} />`}
    ${(moving || paused) && html`
      <${Action} scope="messages:send" label=${t("batches.cancel")} danger run=${move("cancel")} done=${done} confirm=${{
        title: t("batches.cancel.title"), text: t("batches.cancel.text", { queued: count(batch.totals.queued) }),
      }} />
    `}
  `;
}

function Batch({ batch }) {
  const reasons = Object.entries(batch.skippedReasons);
  return html`
    <p><${State} kind="batchStatus" value=${batch.status} /></p>
    ${batch.pauseReason === "no_balance" && html`<p class="notice warn">${t("batches.noBalance")}</p>`}
    <${Section} title=${t("totals.title")}><${Totals} totals=${batch.totals} /><//>
    <${Section} title=${t("section.facts")}>
      <${Facts} rows=${[
        [t("field.id"), html`<code>${batch.id}</code>`],
        [t("field.channel"), word("channel", batch.channel)],
        [t("field.campaign"), batch.campaignId && html`
          <a href=${href("/campaigns/one", { tag: batch.campaignId })}>${batch.campaignId}</a>`],
        [t("field.number"), batch.numberId && html`<a href=${href(`/numbers/${batch.numberId}`)}>${batch.numberId}</a>`],
        [t("field.template"), batch.templateId && html`
          <a href=${href(`/templates/${batch.templateId}`)}>${batch.templateId}</a>`],
        [t("field.heldCoins"), coins(batch.heldCoins)],
        [t("field.chargedCoins"), coins(batch.chargedCoins)],
        [t("field.createdBy"), batch.createdById && html`<code>${batch.createdById}</code>`],
        [t("field.createdAt"), time(batch.createdAt)],
        [t("field.scheduledAt"), batch.scheduledAt && time(batch.scheduledAt)],
        [t("field.startedAt"), batch.startedAt && time(batch.startedAt)],
        [t("field.finishedAt"), batch.finishedAt && time(batch.finishedAt)],
      ]} />
    <//>
    <p><a href=${href("/messages", { batchId: batch.id })}>${t("batches.messages")}</a></p>
    ${reasons.length > 0 && html`
      <${Section} title=${t("batches.skipped")}>
        <${Facts} rows=${reasons.map(([code, number]) => [html`<code>${code}</code>`, count(number)])} />
        ${batch.errors.length > 0 && html`
          <details>
            <summary>${t("batches.errors", { shown: count(batch.errors.length) })}</summary>
            <ul>${batch.errors.map((each) => html`<li><code>${each.path}</code> ${each.message}</li>`)}</ul>
          </details>
        `}
      <//>
    `}
    ${batch.totals.failed > 0 && html`<${Resend} channels=${[batch.channel]} filter=${{ batchId: batch.id }} />`}
  `;
}
