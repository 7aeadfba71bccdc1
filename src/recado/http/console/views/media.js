// Media: what people sent and what was sent to them, among the messages; an upload by its id (C8).
import { html, useState } from "../lib.js";
import { part } from "../api.js";
import { usePages } from "../load.js";
import { Filters } from "../parts/filters.js";
import { Form, choices } from "../parts/form.js";
import { Download, MediaState, told } from "../parts/media.js";
import { Page } from "../parts/page.js";
import { PagedTable } from "../parts/table.js";
import { bytes, time } from "../format.js";
import { go, href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/media";
export const title = "media.title";

const LOOKED_THROUGH = 200; // messages of a page: few of them have media

const COLUMNS = () => [
  { name: t("field.message"), cell: (each) => html`<a href=${href(`/messages/${each.id}`)}>${each.id}</a>` },
  { name: t("media.state"), cell: (each) => html`<${MediaState} message=${each} />` },
  { name: t("field.action"), cell: (each) => {
    const { upload } = told(each);
    if (each.direction === "inbound") return html`<${Download} message=${each} />`;
    return upload && html`<a href=${href(`/media/${upload}`)}>${t("media.upload")}</a>`;
  } },
  { name: t("media.kind"), cell: (each) => word("mediaKind", told(each).kind) },
  { name: t("media.type"), cell: (each) => told(each).type },
  { name: t("media.size"), number: true, cell: (each) => bytes(told(each).size) },
  { name: t("media.name"), cell: (each) => told(each).name },
  { name: t("messages.direction"), cell: (each) => word("direction", each.direction) },
  { name: t("messages.to"), cell: (each) => each.to },
  { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
];

export function render({ query }) {
  const [filters, setFilters] = useState(query);
  const messages = usePages("/messages", filters, LOOKED_THROUGH);
  const found = { ...messages, total: undefined, items: messages.items?.filter(({ type }) => type === "media") };
  return html`
    <${Page} title=${t(title)}>
      <p class="quiet">${t("media.about")}</p>
      <${Form} inline label=${t("media.find")} submit=${t("media.find")} run=${async ({ id }) => go(`/media/${part(id.trim())}`)} fields=${[
        { name: "id", label: t("media.id"), type: "search", placeholder: "med_…", required: true },
      ]} />
      <${Filters} values=${filters} apply=${setFilters} fields=${[
        { name: "direction", label: t("messages.direction"), type: "select", options: choices("direction", ["inbound", "outbound"]) },
        { name: "numberId", label: t("numbers.number"), type: "search", placeholder: "num_…" },
        { name: "contactId", label: t("messages.contact"), type: "search" },
        { name: "from", label: t("field.from"), type: "datetime-local" },
        { name: "to", label: t("field.to"), type: "datetime-local" },
      ]} />
      <${PagedTable} from=${found} label=${t(title)} columns=${COLUMNS()} empty=${t("media.empty")} />
    <//>
  `;
}
