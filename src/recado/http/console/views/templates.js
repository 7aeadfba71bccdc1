// Chat-app templates: which may be sent, which wait for their review (C11).
import { html, useState } from "../lib.js";
import { post } from "../api.js";
import { useGet, usePages } from "../load.js";
import { Button, Dialog } from "../parts/action.js";
import { Filters } from "../parts/filters.js";
import { Form, choices } from "../parts/form.js";
import { Page } from "../parts/page.js";
import { Loaded } from "../parts/states.js";
import { PagedTable } from "../parts/table.js";
import { State } from "../parts/tones.js";
import { time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/templates";
export const title = "templates.title";

const STATUSES = ["draft", "submitted", "pending", "approved", "rejected", "paused", "disabled"];
const MOST_NUMBERS = 200; // of a page of numbers

const COLUMNS = () => [
  { name: t("field.name"), cell: (each) => html`<a href=${href(`/templates/${each.id}`)}>${each.name}</a>` },
  { name: t("field.status"), cell: (each) => html`<${State} kind="templateStatus" value=${each.status} />` },
  { name: t("templates.category"), cell: (each) => word("templateCategory", each.category) },
  { name: t("templates.language"), cell: (each) => each.language },
  { name: t("field.version"), cell: (each) => each.version, number: true },
  { name: t("field.number"), cell: (each) => html`<code>${each.numberId}</code>` },
  { name: t("field.updatedAt"), cell: (each) => time(each.updatedAt) },
];

export function render({ query }) {
  const [filters, setFilters] = useState(query);
  const templates = usePages("/v2/templates", filters);
  return html`
    <${Page} title=${t(title)} actions=${html`<${Sync} done=${templates.reload} />`}>
      <${Filters} values=${filters} apply=${setFilters} fields=${[
        { name: "status", label: t("field.status"), type: "select", options: choices("templateStatus", STATUSES) },
        { name: "category", label: t("templates.category"), type: "select", options: choices("templateCategory", ["marketing", "utility", "authentication"]) },
        { name: "language", label: t("templates.language"), type: "select", options: choices("language", ["pt-BR", "en-US", "es-ES"]) },
        { name: "numberId", label: t("field.number"), type: "search" },
      ]} />
      <${PagedTable} from=${templates} label=${t(title)} columns=${COLUMNS()} empty=${t("templates.empty")} />
    <//>
  `;
}

/** Reads a number's templates from its provider; that goes on after the answer. */
function Sync({ done }) {
  const [asking, setAsking] = useState(false);
  const [started, setStarted] = useState(false);
  const close = () => {
    setAsking(false);
    if (started) done();
  };
  return html`
    <${Button} scope="templates:write" onClick=${() => { setStarted(false); setAsking(true); }}>${t("templates.sync")}<//>
    ${asking && html`<${Dialog} title=${t("templates.sync")} close=${close}>
      ${started
        ? html`<p role="status">${t("templates.synced")}</p>`
        : html`<${SyncForm} done=${() => setStarted(true)} />`}
      <button type="button" onClick=${close}>${t(started ? "action.close" : "action.cancel")}</button>
    <//>`}
  `;
}

function SyncForm({ done }) {
  const numbers = useGet("/numbers", { limit: MOST_NUMBERS });
  return html`
    <${Loaded} from=${numbers}>${(found) => html`
      <p>${t("templates.sync.text")}</p>
      <${Form} label=${t("templates.sync")} submit=${t("templates.sync")} done=${done}
        run=${({ which }) => post("/v2/templates/sync", { numberId: which })}
        fields=${[{ name: "which", pointer: "/numberId", label: t("field.number"), type: "select", required: true,
          options: found.items.map((each) => [each.id, [each.meta.verifiedName, each.displayPhone, each.id].filter(Boolean).join(" · ")]) }]} />
    `}<//>
  `;
}
