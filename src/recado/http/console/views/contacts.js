// Contacts: found by name, phone, tag, consent or identifier (C12.1).
import { html, useState } from "../lib.js";
import { usePages } from "../load.js";
import { Filters } from "../parts/filters.js";
import { choices } from "../parts/form.js";
import { Page } from "../parts/page.js";
import { State } from "../parts/tones.js";
import { PagedTable } from "../parts/table.js";
import { time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/contacts";
export const title = "contacts.title";

const COLUMNS = () => [
  { name: t("field.contact"), cell: (each) => html`
    <a href=${href(`/contacts/${each.id}`)}>${each.name ?? each.chatappProfileName ?? each.id}</a>` },
  { name: t("contacts.phone"), cell: (each) => each.phone },
  { name: t("contacts.email"), cell: (each) => each.email },
  { name: t("contacts.consent"), cell: (each) => html`<${State} kind="consent" value=${each.optIn.status} />` },
  { name: t("contacts.tags"), cell: (each) => each.tags.join(", ") },
  { name: t("contacts.externalId"), cell: (each) => each.externalId },
  { name: t("contacts.source"), cell: (each) => word("contactSource", each.source) },
  { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
];

export function render({ query }) {
  const [filters, setFilters] = useState(query);
  const contacts = usePages("/contacts", filters);
  return html`
    <${Page} title=${t(title)}>
      <${Filters} values=${filters} apply=${setFilters} fields=${[
        { name: "q", label: t("contacts.q"), type: "search", maxlength: 100, hint: t("contacts.q.hint") },
        { name: "tag", label: t("contacts.tag"), type: "search" },
        { name: "optInStatus", label: t("contacts.consent"), type: "select", options: choices("consent", ["unknown", "granted", "denied"]) },
        { name: "source", label: t("contacts.source"), type: "select", options: choices("contactSource", ["manual", "import", "api", "webhook"]) },
        { name: "externalId", label: t("contacts.externalId"), type: "search" },
      ]} />
      ${contacts.warnings.map((each) => html`<p class="notice warn" role="status">${each.detail}</p>`)}
      <${PagedTable} from=${contacts} label=${t(title)} columns=${COLUMNS()} empty=${t("contacts.empty")} />
    <//>
  `;
}
