// What e-mail leaves from: domains and addresses, and how each is proven (C10.4).
import { html, useState } from "../lib.js";
import { newKey, part, patch, post, remove } from "../api.js";
import { usePages } from "../load.js";
import { Action, Button, Dialog } from "../parts/action.js";
import { Form } from "../parts/form.js";
import { Page } from "../parts/page.js";
import { Empty, Loaded } from "../parts/states.js";
import { More, Table } from "../parts/table.js";
import { Badge, Facts, Section } from "../parts/page.js";
import { State } from "../parts/tones.js";
import { time } from "../format.js";
import { t } from "../texts.js";

export const path = "/email/senders";
export const title = "senders.title";

const RECORDS = () => [
  { name: t("senders.record"), cell: (each) => html`<code>${each.type}</code>` },
  { name: t("field.name"), cell: (each) => html`<code>${each.name}</code>` },
  { name: t("senders.value"), cell: (each) => html`<code>${each.value}</code>` },
  { name: t("senders.found"), cell: (each) => html`<${Badge} tone=${each.found ? "good" : "warn"}>${t(each.found ? "yesNo.true" : "yesNo.false")}<//>` },
];

export function render() {
  const senders = usePages("/v2/email/senders");
  return html`
    <${Page} title=${t(title)} actions=${html`<${Add} done=${senders.reload} />`}>
      <p class="quiet">${t("senders.about")}</p>
      <${Loaded} from=${senders}>${(items) => html`
        ${items.length === 0 && html`<${Empty} text=${t("senders.empty")} />`}
        ${items.map((each) => html`<${Sender} key=${each.id} sender=${each} changed=${senders.reload} />`)}
        ${items.length > 0 && html`<${More} from=${senders} shown=${items.length} />`}
      `}<//>
    <//>
  `;
}

function Sender({ sender, changed }) {
  const address = `/v2/email/senders/${part(sender.id)}`;
  const called = sender.domain ?? sender.address;
  const actions = html`
    ${sender.dnsRecords.length > 0 && html`
      <${Action} scope="email:write" label=${t("senders.verify")} describe=${t("senders.verify.of", { called })} run=${() => post(`${address}/verify`)} done=${changed} />`}
    ${sender.status === "verified" && !sender.isDefault && html`
      <${Action} scope="email:write" label=${t("senders.makeDefault")} describe=${t("senders.makeDefault.of", { called })}
        run=${() => patch(address, { isDefault: true })} done=${changed} />`}
    <${Action} scope="email:write" label=${t("action.delete")} describe=${t("senders.delete.of", { called })} danger run=${() => remove(address)} done=${changed}
      confirm=${{ title: t("senders.delete.of", { called }), text: t("senders.delete.text") }} />
  `;
  return html`
    <${Section} title=${called} actions=${actions}>
      <p>
        <${State} kind="senderStatus" value=${sender.status} /> ${" "}
        ${sender.isDefault && html`<${Badge} tone="good">${t("senders.default")}<//>`}
      </p>
      <${Facts} rows=${[
        [t("field.id"), html`<code>${sender.id}</code>`],
        [t("senders.displayName"), sender.displayName],
        [t("senders.verifiedAt"), sender.verifiedAt && time(sender.verifiedAt)],
        [t("field.createdAt"), time(sender.createdAt)],
      ]} />
      ${sender.dnsRecords.length > 0 && html`
        <${Table} label=${t("senders.records", { called })} columns=${RECORDS()} items=${sender.dnsRecords}
          rowKey=${(each) => `${each.type} ${each.name} ${each.value}`} />`}
    <//>
  `;
}

function Add({ done }) {
  const [key, setKey] = useState(null); // of the request that the open form makes
  const add = ({ kind, called, displayName }) => post("/v2/email/senders", { [kind]: called, displayName }, { key });
  const close = () => setKey(null);
  return html`
    <${Button} scope="email:write" class="main" onClick=${() => setKey(newKey())}>${t("senders.add")}<//>
    ${key && html`
      <${Dialog} title=${t("senders.add")} close=${close}>
        <${Form} label=${t("senders.add")} submit=${t("senders.add")} run=${add} done=${() => { close(); done(); }} fields=${[
          { name: "kind", label: t("senders.kind"), type: "select", options: [["domain", t("senders.domain")], ["address", t("senders.address")]] },
          { name: "called", label: t("senders.called"), required: true, maxlength: 254 },
          { name: "displayName", label: t("senders.displayName"), maxlength: 120 },
        ]} />
        <button type="button" onClick=${close}>${t("action.cancel")}</button>
      <//>
    `}
  `;
}
