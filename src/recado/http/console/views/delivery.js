// One delivery of a webhook: what it says, and what became of each attempt (C23.1).
import { html, useRef } from "../lib.js";
import { part } from "../api.js";
import { useGet } from "../load.js";
import { Facts, Json, Page, Section } from "../parts/page.js";
import { Empty, Loaded } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { DeliveryStatus, ReplayOne } from "./webhook.js";
import { count, milliseconds, time } from "../format.js";
import { go, href } from "../router.js";
import { t } from "../texts.js";

export const path = "/webhooks/:id/deliveries/:deliveryId";
export const title = "delivery.title";

const LOOK_EVERY = 2; // seconds, until it is settled

export function render({ params }) {
  const address = `/webhooks/${part(params.id)}`;
  const latest = useRef("pending");
  const every = () => (latest.current === "pending" ? LOOK_EVERY : undefined);
  const read = useGet(`${address}/deliveries/${part(params.deliveryId)}`, {}, { every });
  latest.current = read.data?.status ?? "pending"; // nothing is read yet where a replay leads to the new delivery
  const list = `/webhooks/${params.id}`;
  return html`
    <${Page} title=${t("delivery.title")} back=${{ href: href(list), text: t("webhook.title") }}
      actions=${read.data && read.data.status !== "pending" && html`
        <${ReplayOne} address=${address} delivery=${read.data} done=${(made) => go(`${list}/deliveries/${made.id}`)} />`}>
      <${Loaded} from=${read}>${(delivery) => html`<${Delivery} delivery=${delivery} />`}<//>
    <//>
  `;
}

function Delivery({ delivery }) {
  return html`
    <p><${DeliveryStatus} status=${delivery.status} /> <code>${delivery.event}</code></p>
    <${Facts} rows=${[
      [t("field.message"), delivery.messageId && html`<a href=${href(`/messages/${delivery.messageId}`)}>${delivery.messageId}</a>`],
      [t("field.createdAt"), time(delivery.createdAt)],
      [t("webhook.deliveredAt"), time(delivery.deliveredAt)],
      [t("webhook.nextAttempt"), time(delivery.nextAttemptAt)],
      [t("field.id"), html`<code>${delivery.id}</code>`],
    ]} />
    <${Section} title=${t("webhook.attempts")}>
      ${delivery.attempts.length
        ? html`<${Table} label=${t("webhook.attempts")} items=${delivery.attempts} rowKey=${(each) => each.attempt} columns=${[
            { name: t("delivery.attempt"), cell: (each) => count(each.attempt) },
            { name: t("number.when"), cell: (each) => time(each.at) },
            { name: t("delivery.took"), number: true, cell: (each) => milliseconds(each.durationMs) },
            { name: t("delivery.status"), cell: (each) => each.statusCode },
            { name: t("messages.error"), cell: (each) => each.error },
            { name: t("delivery.answer"), cell: (each) => each.answer },
          ]} />`
        : html`<${Empty} text=${t("delivery.noAttempts")} />`}
    <//>
    <${Section} title=${t("delivery.payload")}>
      ${delivery.payload
        ? html`<${Json} label=${t("delivery.payload")} value=${delivery.payload} />`
        : html`<${Empty} text=${t("delivery.noPayload")} />`}
    <//>
  `;
}
