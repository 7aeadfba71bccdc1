// One message: its way in time, from acceptance over what it waited for to receipts, webhooks and charges; its media.
import { html, useRef } from "../lib.js";
import { get, part, post } from "../api.js";
import { useGet, useLoad } from "../load.js";
import { Badge, Facts, Json, Page, Section } from "../parts/page.js";
import { Action } from "../parts/action.js";
import { MessageMedia } from "../parts/media.js";
import { RcsContent } from "../parts/rcs.js";
import { Empty, Failure, Loaded, Loading } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { MessageStatus } from "./messages.js";
import { DeliveryStatus } from "./webhook.js";
import { coins, count, duration, time } from "../format.js";
import { go, href } from "../router.js";
import { holds } from "../session.js";
import { TEXTS, t, word } from "../texts.js";

export const path = "/messages/:id";
export const title = "message.title";

const UNDER_WAY = ["queued", "sending", "sent"];
const EVERY = 5; // seconds
const EVENT_WITHIN = 60_000; // ms after a change, in which its event is stored

export function render({ params, query }) {
  const channel = useRef(query.channel);
  const read = useLoad((signal) => messageOf(params.id, channel, signal), [params.id], { every: EVERY });
  return html`
    <${Page} title=${t("message.of", { id: params.id })} back=${{ href: href("/messages"), text: t("messages.title") }}
      actions=${read.data && html`<${Actions} message=${read.data} reload=${read.reload} />`}>
      <${Loaded} from=${read}>${(message) => html`<${Message} message=${message} />`}<//>
    <//>
  `;
}

/**
 * The message; `email`: what its channel says of it, where it is an e-mail that went out. One of RCS has a record of its
 * own (C1.11), `rcs`: `channel` says so, a reference, or else that the generic view does not know the id.
 */
async function messageOf(id, channel, signal) {
  if (channel.current === "rcs") return rcsMessage(id, signal);
  let message;
  try {
    message = await get(`/messages/${part(id)}`, {}, { signal });
  } catch (error) {
    if (error.status !== 404 || !holds("rcs:read")) throw error;
    message = await rcsMessage(id, signal);
    channel.current = "rcs";
    return message;
  }
  if (message.channel !== "email" || message.direction !== "outbound") return message;
  return { ...message, email: await get(`/v2/email/messages/${part(id)}`, {}, { signal }) };
}

async function rcsMessage(id, signal) {
  const rcs = await get(`/v2/rcs/messages/${part(id)}`, {}, { signal });
  return { ...rcs, rcs, channel: "rcs", direction: "outbound" };
}

/** An e-mail is neither archived nor sent again: its content is kept nowhere. Nor is RCS, yet (C17.2). */
function Actions({ message, reload }) {
  if (message.channel === "email" || message.rcs) return null;
  const address = `/messages/${part(message.id)}`;
  const able = (...statuses) => message.direction === "outbound" && statuses.includes(message.status);
  return html`
    ${able("queued", "failed") && html`<${Action} scope="messages:send" label=${t("message.archive")} danger run=${() => post(`${address}/archive`)}
      done=${reload} confirm=${{ title: t("message.archiveTitle"), text: t("message.archiveText") }} />`}
    ${able("failed", "archived") && !message.replacedBy && html`
      <${Action} scope="messages:send" label=${t("message.reprocess")} run=${() => post(`${address}/reprocess`)}
        done=${(made) => go(`/messages/${made.id}`)}
        confirm=${{ title: t("message.reprocessTitle"), text: t("message.reprocessText") }} />`}
  `;
}

function Message({ message }) {
  const { email, rcs } = message;
  return html`
    <p><${MessageStatus} status=${email?.status ?? message.status} /></p>
    <${Facts} rows=${[
      [t("field.channel"), word("channel", message.channel)],
      [t("messages.direction"), word("direction", message.direction)],
      [t("messages.to"), message.to],
      [t("message.from"), email?.from],
      [t("emailTemplates.subject"), email?.subject],
      [t("message.reason"), reasonOf(message)],
      [t("message.carrier"), rcs && word("channel", rcs.channel)],
      [t("message.route"), rcs?.route],
      [t("message.type"), message.type && word("messageType", message.type)],
      [t("message.priority"), message.priority && word("priority", message.priority)],
      [t("message.attempts"), message.attempts === undefined ? null : count(message.attempts)],
      [t("numbers.number"), message.numberId && html`<a href=${href(`/numbers/${message.numberId}`)}>${message.numberId}</a>`],
      [t("social.account"), message.socialAccountId && html`
        <a href=${href(`/social/accounts/${message.socialAccountId}`)}>${message.socialAccountId}</a>`],
      [t("messages.contact"), message.contactId && html`
        <a href=${href(`/contacts/${message.contactId}`)}>${message.contactId}</a>`],
      [t("messages.campaign"), message.campaignId && html`
        <a href=${href("/campaigns/one", { tag: message.campaignId })}>${message.campaignId}</a>`],
      [t("messages.batch"), message.batchId && html`
        <a href=${href(`/batches/${message.batchId}`)}>${message.batchId}</a>`],
      [t("message.template"), message.templateId && html`<a href=${href(templateOf(message))}>${message.templateId}</a>`],
      [t("message.sentBy"), message.sentByName],
      [t("message.providerId"), message.providerMessageId],
      [t("messages.error"), message.lastError],
      [t("message.replacedBy"), message.replacedBy && html`
        <a href=${href(`/messages/${message.replacedBy}`)}>${message.replacedBy}</a>`],
    ]} />
    <${Section} title=${t("message.timeline")}><${Timeline} message=${message} /><//>
    ${message.channel === "sms" && message.direction === "outbound" && html`<${SmsReceipt} id=${message.id} />`}
    ${rcs && html`<${RcsContent} rcs=${rcs} />`}
    ${message.type === "media" && html`<${Section} title=${t("media.title")}><${MessageMedia} message=${message} /><//>`}
    <${Section} title=${t("message.webhooks")}><${Deliveries} message=${message} /><//>
    <${Section} title=${t("message.charges")}><${Charges} id=${message.id} /><//>
    <${Section} title=${t("message.content")}>
      <${Json} label=${t("message.content")} value=${{
        payload: message.payload, templateVars: message.templateVars, content: rcs?.content, metadata: message.metadata,
      }} />
    <//>
  `;
}

/** Why it did not arrive, where its channel has words of its own for that. */
function reasonOf({ email, rcs }) {
  if (email?.reason) return word("emailReason", email.reason);
  return rcs?.failureReason && word("rcsReason", rcs.failureReason);
}

function templateOf({ channel, templateId }) {
  return channel === "email" ? `/email/templates/${templateId}` : `/templates/${templateId}`;
}

function Timeline({ message }) {
  const steps = stepsOf(message);
  return html`
    <ol class="timeline">${steps.map(({ name, at, tone, says }) => html`
      <li key=${name}><${Badge} tone=${tone}>${t(`step.${name}`)}<//> ${at && time(at)}
        ${says && html`<div class="quiet">${says}</div>`}</li>`)}
    </ol>
  `;
}

/** What happened, in its order, and what is waited for. [{name, at?, tone?, says?}] */
function stepsOf(message) {
  const { status, waiting, email, rcs } = message;
  const inbound = message.direction === "inbound";
  const from = later(message.createdAt, message.scheduledAt);
  const steps = [{ name: inbound ? "received" : "accepted", at: message.createdAt }];
  if (message.scheduledAt) steps.push({ name: "scheduled", at: message.scheduledAt });
  if (waiting) steps.push({ name: status === "sending" ? "claimed" : "waiting", tone: "warn", says: html`<${Waiting} waiting=${waiting} />` });
  else if (status === "sending") steps.push({ name: "claimed", tone: "warn" });
  if (message.waits) steps.push({ name: "waited", says: html`<${Waited} waits=${message.waits} />` });
  if (rcs?.channel === "sms") steps.push({ name: "bySms", tone: "warn", says: t("step.bySms.says") });
  if (!inbound && message.sentAt) steps.push({ name: "sent", at: message.sentAt, tone: "good", says: message.attempts && sentSays(message, from) });
  if (rcs && mayGoBySms(rcs)) steps.push({ name: "fallback", says: t("step.fallback.says", { after: duration(rcs.fallback.afterSeconds) }) });
  if (message.deliveredAt && !inbound) steps.push({ name: "delivered", at: message.deliveredAt, tone: "good" });
  if (message.readAt) steps.push({ name: "read", at: message.readAt, tone: "good" });
  if (email?.openedAt) steps.push({ name: "opened", at: email.openedAt, tone: "good" });
  if (email?.clickedAt) steps.push({ name: "clicked", at: email.clickedAt, tone: "good" });
  if (email?.status === "complained") steps.push({ name: "complained", tone: "bad" }); // no moment is kept of it
  const failed = email?.status === "bounced" ? "bounced" : "failed";
  const why = message.originalError ?? message.lastError ?? reasonOf(message);
  if (message.failedAt) steps.push({ name: failed, at: message.failedAt, tone: "bad", says: why });
  if (status === "archived") steps.push({ name: "archived", at: message.updatedAt });
  return steps;
}

/** Whether an SMS may still take its place: nothing has arrived, and its time is not over. */
function mayGoBySms({ status, channel, fallback, sentAt }) {
  if (!fallback || channel === "sms" || !["queued", "sent"].includes(status)) return false;
  return !sentAt || Date.now() < Date.parse(sentAt) + 1000 * fallback.afterSeconds;
}

function sentSays(message, from) {
  const waited = (Date.parse(message.sentAt) - Date.parse(from)) / 1000;
  return t("step.sent.says", { waited: duration(waited), attempts: count(message.attempts) });
}

/** The first gate that holds it, until when, how many are before it, and what to do (C14.6). */
function Waiting({ waiting }) {
  const advice = `reason.${waiting.reason}.advice`;
  return html`
    <strong>${word("reason", waiting.reason)}</strong>
    ${waiting.until && html` · ${t("number.until")} ${time(waiting.until)}`}
    ${waiting.ahead !== undefined && html` · ${t("step.ahead", { ahead: count(waiting.ahead) })}`}
    ${waiting.detail && html` · ${waiting.detail}`}
    ${advice in TEXTS && html` · ${t(advice)}`}
  `;
}

/** What it waited for, and for how long, once it has left (C34.4). */
function Waited({ waits }) {
  return waits.map(({ reason, ms }) => html`
    <div key=${reason}><strong>${word("reason", reason)}</strong> · ${duration(ms / 1000)}</div>`);
}

function SmsReceipt({ id }) {
  const read = useGet(`/v2/sms/messages/${part(id)}`);
  return html`
    <${Section} title=${t("message.receipt")}>
      <${Loaded} from=${read}>
        ${(sms) => html`
          <${Facts} rows=${[
            [t("message.route"), sms.route], [t("providers.connection"), sms.provider],
            [t("message.segments"), sms.segments && count(sms.segments)], [t("message.reason"), sms.reason && word("smsReason", sms.reason)],
          ]} />
          ${sms.providerReceipt
            ? html`<${Json} label=${t("message.receipt")} value=${sms.providerReceipt} />`
            : html`<${Empty} text=${t("message.noReceipt")} />`}
        `}
      <//>
    <//>
  `;
}

/** The deliveries that tell of the message, of every subscription. */
function Deliveries({ message }) {
  const { email } = message;
  const moments = [
    message.createdAt, message.sentAt, message.deliveredAt, message.readAt, message.failedAt, message.updatedAt,
    email?.openedAt, email?.clickedAt,
  ];
  const changes = [...new Set(moments.filter(Boolean))];
  const latest = Math.max(...changes.map((each) => Date.parse(each)));
  const every = () => (Date.now() < latest + EVENT_WITHIN ? EVERY : undefined); // its event may come after the change
  const found = useLoad((signal) => deliveriesOf(message.id, signal), [message.id, changes.join()], { every });
  if (!found.data) return found.error ? html`<${Failure} error=${found.error} retry=${found.reload} />` : html`<${Loading} />`;
  if (!found.data.length) return html`<${Empty} text=${t(UNDER_WAY.includes(message.status) ? "message.noWebhooksYet" : "message.noWebhooks")} />`;
  return html`<${Table} label=${t("message.webhooks")} items=${found.data} columns=${[
    { name: t("webhook.event"), cell: (each) => html`
      <a href=${href(`/webhooks/${each.subscriptionId}/deliveries/${each.id}`)}>${each.event}</a>` },
    { name: t("field.status"), cell: (each) => html`<${DeliveryStatus} status=${each.status} />` },
    { name: t("webhook.subscription"), cell: (each) => each.url },
    { name: t("webhook.attempts"), number: true, cell: (each) => count(each.attemptCount) },
    { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
    { name: t("webhook.deliveredAt"), cell: (each) => time(each.deliveredAt) },
  ]} />`;
}

async function deliveriesOf(id, signal) {
  const { items } = await get("/webhooks", { limit: 200 }, { signal });
  const pages = await Promise.all(items.map(async (subscription) => {
    const page = await get(`/webhooks/${part(subscription.id)}/deliveries`, { messageId: id, limit: 200 }, { signal });
    return page.items.map((each) => ({ ...each, subscriptionId: subscription.id, url: subscription.url }));
  }));
  return pages.flat().sort((one, two) => (one.createdAt < two.createdAt ? -1 : 1));
}

function Charges({ id }) {
  const read = useGet("/v2/wallet/ledger", { messageId: id });
  if (read.error?.status === 404) return html`<${Empty} text=${t("wallet.off")} />`;
  return html`
    <${Loaded} from=${read}>
      ${({ items }) => items.length
        ? html`<${Table} label=${t("message.charges")} items=${items} columns=${[
            { name: t("wallet.kind"), cell: (each) => word("ledger", each.kind) },
            { name: t("wallet.coins"), number: true, cell: (each) => coins(each.coins) },
            { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
          ]} />`
        : html`<${Empty} text=${t("message.noCharges")} />`}
    <//>
  `;
}

function later(one, two) {
  return two && two > one ? two : one;
}
