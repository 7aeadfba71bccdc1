// Templates of e-mails (C10.4).
import { html, useState } from "../lib.js";
import { usePages } from "../load.js";
import { Filters } from "../parts/filters.js";
import { choices } from "../parts/form.js";
import { Page } from "../parts/page.js";
import { PagedTable } from "../parts/table.js";
import { State } from "../parts/tones.js";
import { time } from "../format.js";
import { href } from "../router.js";
import { t } from "../texts.js";

export const path = "/email/templates";
export const title = "emailTemplates.title";

const COLUMNS = () => [
  { name: t("field.name"), cell: (each) => html`<a href=${href(`/email/templates/${each.id}`)}>${each.name}</a>` },
  { name: t("emailTemplates.subject"), cell: (each) => each.subject },
  { name: t("field.status"), cell: (each) => html`<${State} kind="emailTemplateStatus" value=${each.status} />` },
  { name: t("field.version"), cell: (each) => each.version, number: true },
  { name: t("emailTemplates.variables"), cell: (each) => each.variables.map(({ name }) => name).join(", ") },
  { name: t("field.updatedAt"), cell: (each) => time(each.updatedAt) },
];

export function render({ query }) {
  const [filters, setFilters] = useState(query);
  const templates = usePages("/v2/email/templates", filters);
  return html`
    <${Page} title=${t(title)}>
      <${Filters} values=${filters} apply=${setFilters} fields=${[
        { name: "q", label: t("field.name"), type: "search" },
        { name: "status", label: t("field.status"), type: "select", options: choices("emailTemplateStatus", ["active", "archived"]) },
      ]} />
      <${PagedTable} from=${templates} label=${t(title)} columns=${COLUMNS()} empty=${t("emailTemplates.empty")} />
    <//>
  `;
}
