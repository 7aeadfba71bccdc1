// How the connections that messages leave through fare (C34.1).
import { html } from "../lib.js";
import { useGet } from "../load.js";
import { Badge, Page } from "../parts/page.js";
import { PagedTable } from "../parts/table.js";
import { count, duration, milliseconds, share } from "../format.js";
import { t, word } from "../texts.js";

export const path = "/providers";
export const title = "providers.title";

const COLUMNS = () => [
  { name: t("providers.connection"), cell: (each) => each.gateway ?? t("providers.ownAccounts") },
  { name: t("field.channel"), cell: (each) => word("channel", each.channel) },
  { name: t("providers.provider"), cell: (each) => each.provider },
  { name: t("field.circuit"), cell: (each) => html`<${Circuit} state=${each.circuit} />` },
  { name: t("providers.troubled"), cell: (each) => count(each.troubled), number: true },
  { name: t("field.inFlight"), cell: (each) => count(each.inFlight), number: true },
  { name: t("field.backlog"), cell: (each) => count(each.backlog), number: true },
  { name: t("field.oldest"), cell: (each) => duration(each.oldestAgeSeconds), number: true },
  { name: t("field.success"), cell: (each) => share(each.successRate), number: true },
  { name: "p50", cell: (each) => milliseconds(each.p50Ms), number: true },
  { name: "p95", cell: (each) => milliseconds(each.p95Ms), number: true },
];

export function render() {
  const providers = useGet("/v2/ops/providers", {}, { every: 5 });
  return html`
    <${Page} title=${t(title)}>
      <p class="quiet">${t("providers.about")}</p>
      <${PagedTable} from=${providers} label=${t(title)} columns=${COLUMNS()} empty=${t("providers.empty")}
        rowKey=${(each) => `${each.channel} ${each.gateway ?? ""}`} />
    <//>
  `;
}

/** Of a circuit: closed is well. */
export function Circuit({ state }) {
  const tone = { closed: "good", half_open: "warn", open: "bad" }[state];
  return html`<${Badge} tone=${tone}>${word("circuit", state)}<//>`;
}
