// The people of the organization: invited, given a role, disabled (C24.2).
import { html, useState } from "../lib.js";
import { newKey, part, patch, post, remove } from "../api.js";
import { usePages } from "../load.js";
import { Action, Button, Dialog } from "../parts/action.js";
import { Form } from "../parts/form.js";
import { Page } from "../parts/page.js";
import { Secret } from "../parts/secret.js";
import { PagedTable } from "../parts/table.js";
import { State } from "../parts/tones.js";
import { time } from "../format.js";
import { t, word } from "../texts.js";

export const path = "/accounts";
export const title = "accounts.title";

const ROLES = ["owner", "admin", "operator", "analyst"];
const roleField = () => ({ name: "role", label: t("accounts.role"), type: "select", options: ROLES.map((each) => [each, word("role", each)]) });

export function render() {
  const accounts = usePages("/v2/accounts");
  const [invited, setInvited] = useState(null);
  const shown = (account) => {
    setInvited(account);
    accounts.reload();
  };
  const columns = [
    { name: t("field.name"), cell: (each) => each.name },
    { name: t("accounts.email"), cell: (each) => each.email },
    { name: t("accounts.role"), cell: (each) => word("role", each.role) },
    { name: t("accounts.extraScopes"), cell: (each) => each.extraScopes.join(", ") },
    { name: t("field.status"), cell: (each) => html`<${State} kind="accountStatus" value=${each.status} />` },
    { name: t("accounts.lastLoginAt"), cell: (each) => time(each.lastLoginAt) },
    { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
    { name: t("field.action"), cell: (each) => html`<${Moves} account=${each} changed=${accounts.reload} invited=${shown} />` },
  ];
  return html`
    <${Page} title=${t(title)} actions=${html`<${Invite} done=${shown} />`}>
      <p class="quiet">${t("accounts.about")}</p>
      <${PagedTable} from=${accounts} label=${t(title)} columns=${columns} empty=${t("accounts.empty")} />
      ${invited && html`
        <${Secret} title=${t("accounts.invited", { name: invited.name })} label=${t("accounts.invitation")} value=${invited.inviteToken}
          text=${t("accounts.invited.text")} gone=${t("accounts.gone")} close=${() => setInvited(null)} />
      `}
    <//>
  `;
}

function Moves({ account, changed, invited }) {
  const { id, name, status } = account;
  const address = `/v2/accounts/${part(id)}`;
  return html`
    <div class="actions">
      <${Role} account=${account} done=${changed} />
      ${status !== "active" && html`
        <${Action} scope="accounts:write" label=${t("accounts.again")} describe=${t("accounts.again.of", { name })} run=${() => post(`${address}/invite`)} done=${invited}
          confirm=${{ title: t("accounts.again.of", { name }), text: t("accounts.again.text") }} />`}
      ${status !== "disabled" && html`
        <${Action} scope="accounts:write" label=${t("accounts.disable")} describe=${t("accounts.disable.of", { name })} danger run=${() => remove(address)} done=${changed}
          confirm=${{ title: t("accounts.disable.of", { name }), text: t("accounts.disable.text") }} />`}
    </div>
  `;
}

function Role({ account: { id, name, role }, done }) {
  const [open, setOpen] = useState(false);
  const close = () => setOpen(false);
  return html`
    <${Button} scope="accounts:write" aria-label=${t("accounts.change.of", { name })} onClick=${() => setOpen(true)}>${t("accounts.change")}<//>
    ${open && html`
      <${Dialog} title=${t("accounts.change.of", { name })} close=${close}>
        <p>${t("accounts.change.text")}</p>
        <${Form} label=${t("accounts.change.of", { name })} submit=${t("action.save")} values=${{ role }} fields=${[roleField()]}
          run=${(body) => patch(`/v2/accounts/${part(id)}`, body)} done=${() => { close(); done(); }} />
        <button type="button" onClick=${close}>${t("action.cancel")}</button>
      <//>
    `}
  `;
}

function Invite({ done }) {
  const [key, setKey] = useState(null); // of the request that the open form makes
  const close = () => setKey(null);
  return html`
    <${Button} scope="accounts:write" class="main" onClick=${() => setKey(newKey())}>${t("accounts.invite")}<//>
    ${key && html`
      <${Dialog} title=${t("accounts.invite")} close=${close}>
        <${Form} label=${t("accounts.invite")} submit=${t("accounts.invite")} values=${{ role: "operator" }}
          run=${(body) => post("/v2/accounts", body, { key })} done=${(made) => { close(); done(made); }} fields=${[
            { name: "name", label: t("field.name"), required: true, maxlength: 120 },
            { name: "email", label: t("accounts.email"), type: "email", required: true, maxlength: 254 },
            roleField(),
          ]} />
        <button type="button" onClick=${close}>${t("action.cancel")}</button>
      <//>
    `}
  `;
}
