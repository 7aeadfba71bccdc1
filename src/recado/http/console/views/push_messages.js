// Push messages: how many devices each one reached (C22.3).
import { html, useState } from "../lib.js";
import { usePages } from "../load.js";
import { Filters } from "../parts/filters.js";
import { choices } from "../parts/form.js";
import { Page } from "../parts/page.js";
import { PagedTable } from "../parts/table.js";
import { State } from "../parts/tones.js";
import { count, time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/push/messages";
export const title = "push.title";

const STATUSES = ["scheduled", "queued", "sending", "completed", "failed", "canceled"];
const ORIGINS = ["composer", "api", "automation"];

const COLUMNS = () => [
  { name: t("push.message"), cell: (each) => html`<a href=${href(`/push/messages/${each.id}`)}>${each.title ?? each.id}</a>` },
  { name: t("field.status"), cell: (each) => html`<${State} kind="pushStatus" value=${each.status} />` },
  { name: t("push.platforms"), cell: (each) => each.platforms.map((one) => word("platform", one)).join(", ") },
  ...["reach", "delivered", "opened", "failed", "unregistered"].map((metric) => ({
    name: t(`push.${metric}`), number: true, cell: (each) => count(each.metrics[metric]),
  })),
  { name: t("push.origin"), cell: (each) => word("pushOrigin", each.origin) },
  { name: t("field.campaign"), cell: (each) => each.campaignId },
  { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
];

export function render({ query }) {
  const [filters, setFilters] = useState(query);
  const messages = usePages("/v2/push/messages", filters);
  return html`
    <${Page} title=${t(title)}>
      <${Filters} values=${filters} apply=${setFilters} fields=${[
        { name: "status", label: t("field.status"), type: "select", options: choices("pushStatus", STATUSES) },
        { name: "origin", label: t("push.origin"), type: "select", options: choices("pushOrigin", ORIGINS) },
        { name: "from", label: t("field.from"), type: "datetime-local" },
        { name: "to", label: t("field.to"), type: "datetime-local" },
      ]} />
      <${PagedTable} from=${messages} label=${t(title)} columns=${COLUMNS()} empty=${t("push.empty")} />
    <//>
  `;
}
