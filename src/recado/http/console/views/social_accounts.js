// Social accounts: which are connected; registering one (C26).
import { html, useState } from "../lib.js";
import { newKey, post } from "../api.js";
import { usePages } from "../load.js";
import { Button, Dialog } from "../parts/action.js";
import { Filters } from "../parts/filters.js";
import { Form, choices } from "../parts/form.js";
import { Page } from "../parts/page.js";
import { PagedTable } from "../parts/table.js";
import { State } from "../parts/tones.js";
import { time } from "../format.js";
import { go, href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/social/accounts";
export const title = "social.title";

const PLATFORMS = ["direct", "page"];

const COLUMNS = () => [
  { name: t("social.account"), cell: (each) => html`<a href=${href(`/social/accounts/${each.id}`)}>${each.displayName}</a>` },
  { name: t("field.status"), cell: (each) => html`<${State} kind="socialStatus" value=${each.status} />` },
  { name: t("social.platform"), cell: (each) => word("socialPlatform", each.platform) },
  { name: t("social.externalId"), cell: (each) => html`<code>${each.externalAccountId}</code>` },
  { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
];

export function render({ query }) {
  const [filters, setFilters] = useState(query);
  const accounts = usePages("/v2/social/accounts", filters);
  return html`
    <${Page} title=${t(title)} actions=${html`<${Register} />`}>
      <p class="quiet">${t("social.about")}</p>
      <${Filters} values=${filters} apply=${setFilters} fields=${[
        { name: "status", label: t("field.status"), type: "select", options: choices("socialStatus", ["pending", "connected", "disconnected"]) },
        { name: "platform", label: t("social.platform"), type: "select", options: choices("socialPlatform", PLATFORMS) },
      ]} />
      <${PagedTable} from=${accounts} label=${t(title)} columns=${COLUMNS()} empty=${t("social.empty")} />
    <//>
  `;
}

function Register() {
  const [key, setKey] = useState(null); // of the request that the open form makes
  const close = () => setKey(null);
  return html`
    <${Button} scope="social:write" class="main" onClick=${() => setKey(newKey())}>${t("social.register")}<//>
    ${key && html`
      <${Dialog} title=${t("social.register")} close=${close}>
        <${Form} label=${t("social.register")} submit=${t("social.register")} run=${(values) => post("/v2/social/accounts", values, { key })}
          done=${(made) => go(`/social/accounts/${made.id}`)} fields=${[
            { name: "displayName", label: t("field.name"), required: true, maxlength: 120 },
            { name: "platform", label: t("social.platform"), type: "select", options: choices("socialPlatform", PLATFORMS).slice(1) },
            { name: "externalAccountId", label: t("social.externalId"), required: true, maxlength: 128, hint: t("social.externalId.hint") },
            { name: "accessToken", label: t("social.token"), type: "password", maxlength: 4096, autocomplete: "off", hint: t("social.token.hint") },
          ]} />
        <button type="button" onClick=${close}>${t("action.cancel")}</button>
      <//>
    `}
  `;
}
