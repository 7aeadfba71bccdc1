// Devices that get push messages: how many of each platform, and each one as its app registered it (C22.2).
import { html, useState } from "../lib.js";
import { useGet, usePages } from "../load.js";
import { Filters } from "../parts/filters.js";
import { choices } from "../parts/form.js";
import { Page, Section } from "../parts/page.js";
import { Loaded } from "../parts/states.js";
import { PagedTable, Table } from "../parts/table.js";
import { State } from "../parts/tones.js";
import { count, time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/push/devices";
export const title = "devices.title";

const STATUSES = ["registered", "opted_out", "invalid"];
export const PLATFORMS = ["ios", "android", "web"];

const SUMS = () => [
  { name: t("push.platform"), cell: (each) => word("platform", each.platform) },
  { name: t("devices.registered"), number: true, cell: (each) => count(each.registered) },
  { name: t("devices.optedOut"), number: true, cell: (each) => count(each.optedOut) },
  { name: t("devices.invalid"), number: true, cell: (each) => count(each.invalid) },
];

const COLUMNS = (apps) => [
  { name: t("push.device"), cell: (each) => html`<code>${each.id}</code>` },
  { name: t("field.status"), cell: (each) => html`<${State} kind="deviceStatus" value=${each.status} />` },
  { name: t("push.platform"), cell: (each) => word("platform", each.platform) },
  { name: t("apps.app"), cell: (each) => apps.find(({ id }) => id === each.appId)?.name ?? html`<code>${each.appId}</code>` },
  { name: t("devices.name"), cell: (each) => each.deviceName },
  { name: t("field.contact"), cell: (each) => each.contactId && html`<a href=${href(`/contacts/${each.contactId}`)}>${each.contactId}</a>` },
  { name: t("contacts.externalId"), cell: (each) => each.externalId },
  { name: t("devices.user"), cell: (each) => each.userName },
  { name: t("contacts.phone"), cell: (each) => each.userPhone },
  { name: t("contacts.email"), cell: (each) => each.userEmail },
  { name: t("devices.topics"), cell: (each) => each.topics.join(", ") },
  { name: t("devices.optedOutAt"), cell: (each) => time(each.optedOutAt) },
  { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
  { name: t("field.updatedAt"), cell: (each) => time(each.updatedAt) },
];

export function render({ query }) {
  const [filters, setFilters] = useState(query);
  const sums = useGet("/v2/push/devices/summary");
  const apps = useGet("/v2/push/apps", { limit: 200 });
  const devices = usePages("/v2/push/devices", filters);
  const named = apps.data?.items ?? [];
  return html`
    <${Page} title=${t(title)}>
      <${Section} title=${t("devices.sums")}>
        <${Loaded} from=${sums}>${({ items }) => html`
          <${Table} label=${t("devices.sums")} columns=${SUMS()} items=${items} rowKey=${(each) => each.platform} />`}<//>
      <//>
      <${Filters} values=${filters} apply=${setFilters} fields=${[
        { name: "appId", label: t("apps.app"), type: "select", options: [["", t("filter.any")], ...named.map(({ id, name }) => [id, name])] },
        { name: "platform", label: t("push.platform"), type: "select", options: choices("platform", PLATFORMS) },
        { name: "status", label: t("field.status"), type: "select", options: choices("deviceStatus", STATUSES) },
        { name: "contactId", label: t("field.contact"), type: "search", placeholder: "cnt_…" },
      ]} />
      <${PagedTable} from=${devices} label=${t(title)} columns=${COLUMNS(named)} empty=${t("devices.empty")} />
    <//>
  `;
}
