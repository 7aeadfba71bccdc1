// The audit: what was done, by whom (C24.5).
import { html, useState } from "../lib.js";
import { usePages } from "../load.js";
import { Filters } from "../parts/filters.js";
import { Json, Page } from "../parts/page.js";
import { PagedTable } from "../parts/table.js";
import { time } from "../format.js";
import { t, word } from "../texts.js";

export const path = "/audit";
export const title = "audit.title";

const COLUMNS = () => [
  { name: t("audit.at"), cell: (each) => time(each.at) },
  { name: t("audit.action"), cell: (each) => html`<code>${each.action}</code>` },
  { name: t("audit.actor"), cell: (each) => html`${word("actorType", each.actor.type)} <code>${each.actor.id}</code>` },
  { name: t("audit.target"), cell: (each) => each.targetId && html`<code>${each.targetId}</code>` },
  { name: t("field.ip"), cell: (each) => each.ip },
  { name: t("state.request"), cell: (each) => each.requestId && html`<code>${each.requestId}</code>` },
  { name: t("audit.details"), cell: (each) => Object.keys(each.details).length > 0 && html`
    <details><summary>${t("audit.see")}</summary><${Json} value=${each.details} label=${t("audit.details")} /></details>` },
];

export function render({ query }) {
  const [filters, setFilters] = useState(query);
  const entries = usePages("/v2/audit", filters);
  return html`
    <${Page} title=${t(title)}>
      <${Filters} values=${filters} apply=${setFilters} fields=${[
        { name: "action", label: t("audit.action"), type: "search", hint: t("audit.action.hint") },
        { name: "actorId", label: t("audit.actor"), type: "search" },
        { name: "targetId", label: t("audit.target"), type: "search" },
        { name: "from", label: t("field.from"), type: "datetime-local" },
        { name: "to", label: t("field.to"), type: "datetime-local" },
      ]} />
      <${PagedTable} from=${entries} label=${t(title)} columns=${COLUMNS()} empty=${t("audit.empty")} />
    <//>
  `;
}
