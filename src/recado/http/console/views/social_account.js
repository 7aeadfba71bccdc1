// One social account: whether it is connected, and who wrote to it, which opens the window to answer (C26).
import { html, useMemo, useState } from "../lib.js";
import { part, patch, post, remove } from "../api.js";
import { useGet, usePages } from "../load.js";
import { Action, Button, Dialog } from "../parts/action.js";
import { Form } from "../parts/form.js";
import { Facts, Page, Section } from "../parts/page.js";
import { Loaded } from "../parts/states.js";
import { PagedTable } from "../parts/table.js";
import { State } from "../parts/tones.js";
import { time } from "../format.js";
import { go, href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/social/accounts/:id";
export const title = "social.account";

const WINDOW = 24 * 3_600_000; // ms after what a person wrote, in which they can be answered (C15.2.2)
const LOOK_EVERY = 10; // seconds

export function render({ params }) {
  const address = `/v2/social/accounts/${part(params.id)}`;
  const account = useGet(address, {}, { every: LOOK_EVERY });
  return html`
    <${Page} title=${account.data?.displayName ?? params.id} back=${{ href: href("/social/accounts"), text: t("social.title") }}
      actions=${account.data && html`<${Moves} account=${account.data} address=${address} done=${account.reload} />`}>
      <${Loaded} from=${account}>${(found) => html`<${Account} account=${found} />`}<//>
    <//>
  `;
}

function Moves({ account, address, done }) {
  const called = account.displayName;
  const connected = account.status === "connected";
  return html`
    ${connected
      ? html`<${Action} scope="social:write" label=${t("social.disconnect")} danger run=${() => post(`${address}/disconnect`)} done=${done}
          confirm=${{ title: t("social.disconnect.of", { called }), text: t("social.disconnect.text") }} />`
      : html`<${Action} scope="social:write" label=${t("social.connect")} run=${() => post(`${address}/connect`)} done=${done} />`}
    <${Change} account=${account} address=${address} done=${done} />
    <${Action} scope="social:write" label=${t("action.delete")} danger run=${() => remove(address)} done=${() => go("/social/accounts")}
      confirm=${{ title: t("social.delete.of", { called }), text: t("social.delete.text") }} />
  `;
}

/** Its name, and a new token, which replaces the former one. */
function Change({ account, address, done }) {
  const [open, setOpen] = useState(false);
  const close = () => setOpen(false);
  return html`
    <${Button} scope="social:write" onClick=${() => setOpen(true)}>${t("social.change")}<//>
    ${open && html`
      <${Dialog} title=${t("social.change")} close=${close}>
        <${Form} label=${t("social.change")} submit=${t("action.save")} run=${(values) => patch(address, values)} values=${{ displayName: account.displayName }}
          done=${() => { close(); done(); }} fields=${[
            { name: "displayName", label: t("field.name"), required: true, maxlength: 120 },
            { name: "accessToken", label: t("social.newToken"), type: "password", maxlength: 4096, autocomplete: "off", hint: t("social.newToken.hint") },
          ]} />
        <button type="button" onClick=${close}>${t("action.cancel")}</button>
      <//>
    `}
  `;
}

function Account({ account }) {
  return html`
    <p><${State} kind="socialStatus" value=${account.status} /></p>
    ${account.status !== "connected" && html`<p class="notice warn">${t("social.advice")}</p>`}
    <${Facts} rows=${[
      [t("field.id"), html`<code>${account.id}</code>`],
      [t("social.platform"), word("socialPlatform", account.platform)],
      [t("social.externalId"), html`<code>${account.externalAccountId}</code>`],
      [t("field.createdAt"), time(account.createdAt)],
      [t("field.updatedAt"), time(account.updatedAt)],
    ]} />
    <p><a href=${href("/messages", { channel: "social" })}>${t("social.messages")}</a></p>
    <${Section} title=${t("social.window")}><${Wrote} id=${account.id} /><//>
  `;
}

const COLUMNS = () => [
  { name: t("messages.to"), cell: (each) => each.to },
  { name: t("social.until"), cell: (each) => time(new Date(Date.parse(each.createdAt) + WINDOW).toISOString()) },
  { name: t("messages.contact"), cell: (each) => each.contactId && html`<a href=${href(`/contacts/${each.contactId}`)}>${each.contactId}</a>` },
  { name: t("field.message"), cell: (each) => html`<a href=${href(`/messages/${each.id}`)}>${each.id}</a>` },
  { name: t("social.wroteAt"), cell: (each) => time(each.createdAt) },
];

/** What people wrote to the account in the last 24 hours; the list of messages knows no account. */
function Wrote({ id }) {
  const from = useMemo(() => new Date(Date.now() - WINDOW).toISOString(), [id]);
  const messages = usePages("/messages", { channel: "social", direction: "inbound", from }, 200);
  const found = { ...messages, total: undefined, items: messages.items?.filter(({ socialAccountId }) => socialAccountId === id) };
  return html`
    <p class="quiet">${t("social.window.about")}</p>
    <${PagedTable} from=${found} label=${t("social.window")} columns=${COLUMNS()} empty=${t("social.window.empty")} />
  `;
}
