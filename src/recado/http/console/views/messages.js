// Messages: searched by id, recipient, contact, campaign and the like; e-mails by address, and RCS, in lists of their own.
import { html, useState } from "../lib.js";
import { ApiError, part } from "../api.js";
import { session } from "../session.js";
import { usePages } from "../load.js";
import { Badge, Page } from "../parts/page.js";
import { Form, choices } from "../parts/form.js";
import { PagedTable } from "../parts/table.js";
import { time } from "../format.js";
import { go, href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/messages";
export const title = "messages.title";

const STATUSES = ["queued", "sending", "sent", "delivered", "read", "failed", "archived"];
const CHANNELS = ["chatapp", "sms", "rcs", "email", "social"];
export const MESSAGE_TONES = {
  delivered: "good", read: "good", failed: "bad", bounced: "bad", complained: "bad", queued: "warn", sending: "warn",
};

// What was searched for last, so that one comes back to it. Not in the address, which the browser keeps: it may be a phone.
let kept = { token: null, filters: {} };

const COLUMNS = () => [
  { name: t("field.message"), cell: (each) => html`<a href=${href(`/messages/${each.id}`)}>${each.id}</a>` },
  { name: t("field.status"), cell: (each) => html`<${MessageStatus} status=${each.status} />` },
  { name: t("field.channel"), cell: (each) => word("channel", each.channel) },
  { name: t("messages.direction"), cell: (each) => word("direction", each.direction) },
  { name: t("messages.to"), cell: (each) => each.to },
  { name: t("messages.campaign"), cell: (each) => each.campaignId },
  { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
  { name: t("messages.error"), wide: true, cell: (each) => each.lastError },
];

/** Of what an address was sent. */
const EMAIL_COLUMNS = () => [
  ...COLUMNS().slice(0, 2),
  { name: t("messages.to"), cell: (each) => each.to },
  { name: t("emailTemplates.subject"), wide: true, cell: (each) => each.subject },
  { name: t("messages.campaign"), cell: (each) => each.campaignId },
  { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
  { name: t("message.reason"), wide: true, cell: (each) => word("emailReason", each.reason) },
];

/** Of RCS: an SMS may have taken its place. */
const RCS_COLUMNS = () => [
  { name: t("field.message"), cell: (each) => html`<a href=${href(`/messages/${each.id}`, { channel: "rcs" })}>${each.id}</a>` },
  { name: t("field.status"), cell: (each) => html`<${MessageStatus} status=${each.status} />` },
  { name: t("message.carrier"), cell: (each) => word("channel", each.channel) },
  { name: t("messages.to"), cell: (each) => each.to },
  { name: t("messages.campaign"), cell: (each) => each.campaignId },
  { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
  { name: t("message.reason"), wide: true, cell: (each) => each.failureReason && word("rcsReason", each.failureReason) },
];

/**
 * Lists beside the one of all channels. `holds`: what is looked for stands there; `takes`: the filters that it has, null
 * for any value, else the values that all of it has or that it knows; a search with others is refused at the field `at`.
 */
const APART = [
  {
    holds: ({ recipient }) => isAddress(recipient),
    takes: { recipient: null, campaignId: null, channel: ["email"], direction: ["outbound"] },
    at: "/recipient",
    refusal: "messages.address",
    ask: ({ recipient, campaignId }) => ["/v2/email/messages", { to: recipient, campaignId }],
    columns: EMAIL_COLUMNS,
  },
  {
    holds: ({ channel }) => channel === "rcs",
    takes: { channel: ["rcs"], campaignId: null, status: ["queued", "sent", "delivered", "read", "failed"], direction: ["outbound"] },
    at: "/channel",
    refusal: "messages.rcs",
    ask: ({ status, campaignId }) => ["/v2/rcs/messages", { status, campaignId }],
    columns: RCS_COLUMNS,
  },
];
const ALL = { ask: ({ recipient, ...others }) => ["/messages", { ...others, phone: recipient }], columns: COLUMNS };

export function render({ query }) {
  const token = session.value.tokens[session.value.env];
  const asked = Object.keys(query).length > 0;
  const [filters, setFilters] = useState(asked ? query : kept.token === token ? kept.filters : {});
  const search = async ({ id, ...values }) => {
    if (id) return go(`/messages/${part(id.trim())}`);
    onlyTaken(values);
    kept = { token, filters: values };
    setFilters(values);
  };
  const list = listOf(filters);
  const pages = usePages(...list.ask(filters));
  return html`
    <${Page} title=${t(title)}>
      <${Form} inline label=${t("messages.search")} submit=${t("messages.search")} values=${filters} run=${search} fields=${[
        { name: "id", label: t("messages.id"), type: "search", placeholder: "msg_…" },
        { name: "recipient", label: t("messages.recipient"), type: "search", placeholder: "+55…" },
        { name: "contactId", label: t("messages.contact"), type: "search" },
        { name: "campaignId", label: t("messages.campaign"), type: "search" },
        { name: "numberId", label: t("numbers.number"), type: "search", placeholder: "num_…" },
        { name: "batchId", label: t("messages.batch"), type: "search", placeholder: "btc_…" },
        { name: "status", label: t("field.status"), type: "select", options: choices("messageStatus", STATUSES) },
        { name: "channel", label: t("field.channel"), type: "select", options: choices("channel", CHANNELS) },
        { name: "direction", label: t("messages.direction"), type: "select", options: choices("direction", ["outbound", "inbound"]) },
        { name: "from", label: t("field.from"), type: "datetime-local" },
        { name: "to", label: t("field.to"), type: "datetime-local" },
      ]} />
      <${PagedTable} from=${pages} label=${t(title)} columns=${list.columns()}
        empty=${t(Object.keys(filters).length ? "messages.none" : "messages.empty")} />
    <//>
  `;
}

function isAddress(recipient) {
  return recipient?.includes("@") ?? false;
}

function listOf(filters) {
  return APART.find(({ holds }) => holds(filters)) ?? ALL;
}

function onlyTaken(values) {
  const { takes, at, refusal } = listOf(values);
  const able = ([name, value]) => name in takes && (takes[name]?.includes(value) ?? true);
  if (!takes || Object.entries(values).every(able)) return;
  throw new ApiError(422, { errors: [{ path: at, message: t(refusal) }] });
}

export function MessageStatus({ status }) {
  return html`<${Badge} tone=${MESSAGE_TONES[status]}>${word("messageStatus", status)}<//>`;
}
