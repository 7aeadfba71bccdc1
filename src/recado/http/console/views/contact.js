// One contact: what is known of it, the history of its consent, its refusal, and its documents for a reason (C12).
import { html, useState } from "../lib.js";
import { part, post } from "../api.js";
import { useGet, usePages } from "../load.js";
import { Action, Button, Dialog } from "../parts/action.js";
import { Form } from "../parts/form.js";
import { Facts, Page, Section } from "../parts/page.js";
import { Loaded } from "../parts/states.js";
import { PagedTable } from "../parts/table.js";
import { State } from "../parts/tones.js";
import { time } from "../format.js";
import { href } from "../router.js";
import { holds } from "../session.js";
import { t, word } from "../texts.js";

export const path = "/contacts/:id";
export const title = "field.contact";

const DOCUMENTS = ["cpf", "cnpj", "nascimento"];

export function render({ params }) {
  const contact = useGet(`/contacts/${part(params.id)}`);
  const consents = usePages(`/contacts/${part(params.id)}/consents`);
  const changed = () => {
    contact.reload();
    consents.reload();
  };
  const found = contact.data;
  const optOut = html`
    <${Action} scope="contacts:write" label=${t("contacts.optOut")} danger done=${changed}
      run=${() => post("/contacts/opt-out", { contactId: params.id, source: "console" })}
      confirm=${{ title: t("contacts.optOut.title"), text: t("contacts.optOut.text") }} />`;
  return html`
    <${Page} title=${found?.name ?? found?.chatappProfileName ?? params.id} actions=${found && found.optIn.status !== "denied" && optOut}
      back=${{ href: href("/contacts"), text: t("contacts.title") }}>
      <${Loaded} from=${contact}>${(each) => html`
        <${Contact} contact=${each} />
        <${Section} title=${t("contacts.history")}>
          <${PagedTable} from=${consents} label=${t("contacts.history")} columns=${COLUMNS()}
            empty=${t("contacts.history.empty")} rowKey=${(each) => `${each.recordedAt} ${each.to}`} />
        <//>
      `}<//>
    <//>
  `;
}

const COLUMNS = () => [
  { name: t("contacts.recordedAt"), cell: (each) => time(each.recordedAt) },
  { name: t("contacts.before"), cell: (each) => each.from && word("consent", each.from) },
  { name: t("contacts.after"), cell: (each) => html`<${State} kind="consent" value=${each.to} />` },
  { name: t("contacts.givenAt"), cell: (each) => time(each.at) },
  { name: t("contacts.consentSource"), cell: (each) => each.source },
  { name: t("contacts.revokedReason"), cell: (each) => each.revokedReason },
  { name: t("field.ip"), cell: (each) => each.ip },
  { name: t("contacts.userAgent"), cell: (each) => each.userAgent },
];

function Contact({ contact }) {
  const { optIn: consent, externalIds, attributes, documentos: documents } = contact;
  return html`
    <p><${State} kind="consent" value=${consent.status} /></p>
    <${Facts} rows=${[
      [t("field.id"), html`<code>${contact.id}</code>`],
      [t("field.name"), contact.name],
      [t("contacts.profileName"), contact.chatappProfileName],
      [t("contacts.phone"), contact.phone],
      [t("contacts.email"), contact.email],
      [t("contacts.tags"), contact.tags.join(", ")],
      [t("contacts.source"), word("contactSource", contact.source)],
      [t("contacts.externalId"), contact.externalId],
      ...Object.entries(externalIds ?? {}).map(([name, value]) => [html`<code>${name}</code>`, value]),
      ...(contact.socialIdentities ?? []).map(({ socialAccountId, userId }) => [t("contacts.social"), html`
        ${userId} · <a href=${href(`/social/accounts/${socialAccountId}`)}>${socialAccountId}</a>`]),
      [t("contacts.company"), contact.companyId && html`<code>${contact.companyId}</code>`],
      [t("contacts.role"), contact.papelNaEmpresa && word("companyRole", contact.papelNaEmpresa)],
      [t("contacts.lastInteraction"), contact.lastInteractionAt && time(contact.lastInteractionAt)],
      [t("field.createdAt"), time(contact.createdAt)],
      [t("field.updatedAt"), time(contact.updatedAt)],
    ]} />
    <ul class="links">
      <li><a href=${href("/messages", { contactId: contact.id })}>${t("contacts.messages")}</a></li>
      ${holds("push:read") && html`<li><a href=${href("/push/devices", { contactId: contact.id })}>${t("contacts.devices")}</a></li>`}
    </ul>
    ${Object.keys(attributes).length > 0 && html`
      <${Section} title=${t("contacts.attributes")}>
        <${Facts} rows=${Object.entries(attributes).map(([name, value]) => [html`<code>${name}</code>`, valueText(value)])} />
      <//>
    `}
    ${documents && Object.keys(documents).length > 0 && html`<${Documents} contact=${contact} />`}
  `;
}

/** Masked, until somebody reveals them and says why; what was revealed goes with the page. */
function Documents({ contact }) {
  const [asking, setAsking] = useState(false);
  const [revealed, setRevealed] = useState(null);
  const there = DOCUMENTS.filter((each) => contact.documentos[each] !== undefined);
  const reveal = ({ motivo, ...chosen }) =>
    post(`/v2/contacts/${part(contact.id)}/documentos/revelar`, { motivo, campos: there.filter((each) => chosen[each]) });
  const shown = (answer) => {
    setRevealed(answer);
    setAsking(false);
  };
  const button = revealed
    ? html`<button type="button" onClick=${() => setRevealed(null)}>${t("contacts.hide")}</button>`
    : html`<${Button} scope="contacts:pii" onClick=${() => setAsking(true)}>${t("contacts.reveal")}<//>`;
  return html`
    <${Section} title=${t("contacts.documents")} actions=${button}>
      <${Facts} rows=${there.map((each) => [word("document", each), revealed?.[each] ?? contact.documentos[each]])} />
      ${revealed && html`<p class="quiet" role="status">${t("contacts.revealed")} <code>${revealed.auditId}</code></p>`}
      ${asking && html`
        <${Dialog} title=${t("contacts.reveal")} close=${() => setAsking(false)}>
          <p>${t("contacts.reveal.text")}</p>
          <${Form} label=${t("contacts.reveal")} submit=${t("contacts.reveal")} run=${reveal} done=${shown}
            values=${Object.fromEntries(there.map((each) => [each, true]))} fields=${[
              { name: "motivo", label: t("contacts.reason"), type: "textarea", required: true, minlength: 10, maxlength: 300,
                hint: t("contacts.reason.hint") },
              ...there.map((each) => ({ name: each, label: word("document", each), type: "checkbox" })),
            ]} />
          <button type="button" onClick=${() => setAsking(false)}>${t("action.cancel")}</button>
        <//>
      `}
    <//>
  `;
}

function valueText(value) {
  return value === null ? "–" : [value].flat().map(String).join(", ");
}
