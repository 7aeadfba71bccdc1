// API keys: who may call what; a token is shown once (C24.4).
import { html, useState } from "../lib.js";
import { get, newKey, part, post, remove } from "../api.js";
import { useLoad, usePages } from "../load.js";
import { Action, Button, Dialog } from "../parts/action.js";
import { Form } from "../parts/form.js";
import { Page } from "../parts/page.js";
import { Secret } from "../parts/secret.js";
import { Loaded } from "../parts/states.js";
import { PagedTable } from "../parts/table.js";
import { State } from "../parts/tones.js";
import { time } from "../format.js";
import { t } from "../texts.js";

export const path = "/api-keys";
export const title = "apiKeys.title";

const GRACES = [0, 3_600, 86_400, 604_800]; // seconds for which the former token holds

export function render() {
  const keys = usePages("/v2/api-keys");
  const [issued, setIssued] = useState(null);
  const shown = (key) => {
    setIssued(key);
    keys.reload();
  };
  const columns = [
    { name: t("field.name"), cell: (each) => each.name },
    { name: t("field.status"), cell: (each) => html`<${State} kind="keyStatus" value=${each.status} />` },
    { name: t("apiKeys.prefix"), cell: (each) => html`<code>${each.prefix}…</code>` },
    { name: t("apiKeys.scopes"), cell: (each) => html`<${Scopes} scopes=${each.scopes} />` },
    { name: t("apiKeys.allowedIps"), cell: (each) => each.allowedIps.join(", ") },
    { name: t("apiKeys.expiresAt"), cell: (each) => time(each.expiresAt) },
    { name: t("apiKeys.lastUsedAt"), cell: (each) => time(each.lastUsedAt) },
    { name: t("apiKeys.previous"), cell: (each) => time(each.previousValidUntil) },
    { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
    { name: t("field.action"), cell: (each) => each.status !== "revoked" && html`
      <div class="actions">
        ${each.status === "active" && html`<${Rotate} apiKey=${each} done=${shown} />`}
        <${Action} scope="apikeys:write" label=${t("apiKeys.revoke")} describe=${t("apiKeys.revoke.of", { name: each.name })} danger
          run=${() => remove(`/v2/api-keys/${part(each.id)}`)} done=${keys.reload}
          confirm=${{ title: t("apiKeys.revoke.of", { name: each.name }), text: t("apiKeys.revoke.text") }} />
      </div>` },
  ];
  return html`
    <${Page} title=${t(title)} actions=${html`<${Create} done=${shown} />`}>
      <p class="quiet">${t("apiKeys.about")}</p>
      <${PagedTable} from=${keys} label=${t(title)} columns=${columns} empty=${t("apiKeys.empty")} />
      ${issued && html`
        <${Secret} title=${t("apiKeys.issued", { name: issued.name })} label=${t("apiKeys.token")} value=${issued.token}
          text=${t("apiKeys.issued.text")} gone=${t("apiKeys.gone")} close=${() => setIssued(null)} />
      `}
    <//>
  `;
}

function Scopes({ scopes }) {
  return html`<details><summary>${t("apiKeys.scopeCount", { count: scopes.length })}</summary>${scopes.join(", ")}</details>`;
}

function Rotate({ apiKey: { id, name }, done }) {
  const [key, setKey] = useState(null); // of the request that the open form makes
  const close = () => setKey(null);
  const rotate = ({ grace }) => post(`/v2/api-keys/${part(id)}/rotate`, { graceSeconds: Number(grace) }, { key });
  return html`
    <${Button} scope="apikeys:write" aria-label=${t("apiKeys.rotate.of", { name })} onClick=${() => setKey(newKey())}>${t("apiKeys.rotate")}<//>
    ${key && html`
      <${Dialog} title=${t("apiKeys.rotate.of", { name })} close=${close}>
        <p>${t("apiKeys.rotate.text")}</p>
        <${Form} label=${t("apiKeys.rotate.of", { name })} submit=${t("apiKeys.rotate")} run=${rotate} done=${(made) => { close(); done(made); }}
          values=${{ grace: "86400" }} fields=${[
            { name: "grace", pointer: "/graceSeconds", label: t("apiKeys.grace"), type: "select",
              options: GRACES.map((each) => [String(each), t(`apiKeys.grace.${each}`)]) },
          ]} />
        <button type="button" onClick=${close}>${t("action.cancel")}</button>
      <//>
    `}
  `;
}

function Create({ done }) {
  const [key, setKey] = useState(null);
  const close = () => setKey(null);
  return html`
    <${Button} scope="apikeys:write" class="main" onClick=${() => setKey(newKey())}>${t("apiKeys.create")}<//>
    ${key && html`
      <${Dialog} title=${t("apiKeys.create")} close=${close}>
        <${CreateForm} idempotencyKey=${key} done=${(made) => { close(); done(made); }} />
        <button type="button" onClick=${close}>${t("action.cancel")}</button>
      <//>
    `}
  `;
}

/** Which scopes there are says the API's own document. */
function CreateForm({ idempotencyKey, done }) {
  const scopes = useLoad(async (signal) => {
    const { components } = await get("/v2/openapi.json", {}, { signal });
    return components.schemas.ApiKeyCreate.properties.scopes.items.enum;
  }, []);
  const create = ({ name, expiresAt, allowedIps, ...chosen }) =>
    post("/v2/api-keys", {
      name,
      scopes: scopes.data.filter((each) => chosen[each]),
      ...(expiresAt && { expiresAt }),
      ...(allowedIps.length && { allowedIps }),
    }, { key: idempotencyKey });
  return html`
    <${Loaded} from=${scopes}>${(all) => html`
      <${Form} label=${t("apiKeys.create")} submit=${t("apiKeys.create")} run=${create} done=${done} fields=${[
        { name: "name", label: t("field.name"), required: true, maxlength: 80 },
        { name: "expiresAt", label: t("apiKeys.expiresAt"), type: "datetime-local", hint: t("apiKeys.expiresAt.hint") },
        { name: "allowedIps", label: t("apiKeys.allowedIps"), type: "lines", hint: t("apiKeys.allowedIps.hint") },
        ...all.map((each) => ({ name: each, label: each, type: "checkbox" })),
      ]} />
    `}<//>
  `;
}
