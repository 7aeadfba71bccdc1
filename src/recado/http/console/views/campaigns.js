// Campaigns: what became of the messages under one tag (C15.6).
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

export const path = "/campaigns";
export const title = "campaigns.title";

const COLUMNS = () => [
  { name: t("field.campaign"), cell: (each) => html`<a href=${href("/campaigns/one", { tag: each.campaignId })}>${each.campaignId}</a>` },
  { name: t("field.status"), cell: (each) => html`<${State} kind="campaignStatus" value=${each.status} />` },
  { name: t("field.channels"), cell: (each) => each.channels.map((channel) => word("channel", channel)).join(", ") },
  { name: t("totals.progress"), cell: (each) => html`<${Progress} totals=${each.totals} />` },
  { name: t("totals.accepted"), cell: (each) => count(each.totals.accepted), number: true },
  { name: t("totals.failed"), cell: (each) => count(each.totals.failed), number: true },
  { name: t("campaigns.first"), cell: (each) => time(each.firstMessageAt) },
];

export function render({ query }) {
  const [filters, setFilters] = useState(query);
  const campaigns = usePages("/v2/campaigns", filters);
  return html`
    <${Page} title=${t(title)}>
      <${Filters} values=${filters} apply=${setFilters} fields=${[
        { name: "status", label: t("field.status"), type: "select", options: choices("campaignStatus", ["running", "completed"]) },
        { name: "from", label: t("field.from"), type: "datetime-local" },
        { name: "to", label: t("field.to"), type: "datetime-local" },
      ]} />
      <${PagedTable} from=${campaigns} label=${t(title)} columns=${COLUMNS()} empty=${t("campaigns.empty")}
        rowKey=${(each) => each.campaignId} />
    <//>
  `;
}
