// Batches: how far each one is (C15.5).
import { html, useState } from "../lib.js";
import { usePages } from "../load.js";
import { Filters } from "../parts/filters.js";
import { choices } from "../parts/form.js";
import { Page } from "../parts/page.js";
import { Progress } from "../parts/progress.js";
import { State } from "../parts/tones.js";
import { PagedTable } from "../parts/table.js";
import { count, time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/batches";
export const title = "batches.title";

const STATUSES = ["building", "running", "paused", "completed", "canceled", "failed"];

const COLUMNS = () => [
  { name: t("batches.batch"), cell: (each) => html`<a href=${href(`/batches/${each.id}`)}>${each.name ?? each.id}</a>` },
  { name: t("field.status"), cell: (each) => html`<${State} kind="batchStatus" value=${each.status} />` },
  { name: t("field.channel"), cell: (each) => word("channel", each.channel) },
  { name: t("totals.progress"), cell: (each) => html`<${Progress} totals=${each.totals} />` },
  { name: t("totals.accepted"), cell: (each) => count(each.totals.accepted), number: true },
  { name: t("totals.failed"), cell: (each) => count(each.totals.failed), number: true },
  { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
];

export function render({ query }) {
  const [filters, setFilters] = useState(query);
  const batches = usePages("/v2/batches", filters);
  return html`
    <${Page} title=${t(title)}>
      <${Filters} values=${filters} apply=${setFilters} fields=${[
        { name: "status", label: t("field.status"), type: "select", options: choices("batchStatus", STATUSES) },
        { name: "campaignId", label: t("field.campaign"), type: "search" },
        { name: "from", label: t("field.from"), type: "datetime-local" },
        { name: "to", label: t("field.to"), type: "datetime-local" },
      ]} />
      <${PagedTable} from=${batches} label=${t(title)} columns=${COLUMNS()} empty=${t("batches.empty")} />
    <//>
  `;
}
