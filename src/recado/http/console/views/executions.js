// The executions of a journey: who goes through it, and where each stands (C9.10).
import { html, useState } from "../lib.js";
import { part } from "../api.js";
import { useGet, usePages } from "../load.js";
import { Filters } from "../parts/filters.js";
import { choices } from "../parts/form.js";
import { Page } from "../parts/page.js";
import { State } from "../parts/tones.js";
import { PagedTable } from "../parts/table.js";
import { time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/journeys/:id/executions";
export const title = "executions.title";

const COLUMNS = (id) => [
  { name: t("executions.execution"), cell: (each) => html`
    <a href=${href(`/journeys/${id}/executions/${each.id}`)}>${each.id}</a>` },
  { name: t("field.status"), cell: (each) => html`<${State} kind="executionStatus" value=${each.status} />` },
  { name: t("executions.reason"), cell: (each) => each.motivo && word("endReason", each.motivo) },
  { name: t("field.contact"), cell: (each) => html`
    <a href=${href(`/contacts/${each.contactId}`)}>${each.contactExternalId ?? each.contactId}</a>` },
  { name: t("executions.step"), cell: (each) => each.passoAtual },
  { name: t("executions.awaits"), cell: awaited },
  { name: t("executions.origin"), cell: (each) => word("trigger", each.origem) },
  { name: t("executions.startedAt"), cell: (each) => time(each.iniciadaEm) },
  { name: t("executions.endedAt"), cell: (each) => time(each.encerradaEm) },
];

export function render({ params, query }) {
  const address = `/v2/journeys/${part(params.id)}`;
  const journey = useGet(address);
  const [filters, setFilters] = useState(query);
  const executions = usePages(`${address}/executions`, filters);
  const name = journey.data?.name ?? params.id;
  return html`
    <${Page} title=${t(title)} back=${{ href: href(`/journeys/${params.id}`), text: name }}>
      <${Filters} values=${filters} apply=${setFilters} fields=${[
        { name: "status", label: t("field.status"), type: "select", options: choices("executionStatus", ["ativa", "concluida", "cancelada", "erro"]) },
        { name: "passo", label: t("executions.step"), type: "search" },
        { name: "contactId", label: t("field.contact"), type: "search" },
        { name: "teste", label: t("executions.test"), type: "select", options: choices("yesNo", ["true", "false"]) },
        { name: "from", label: t("field.from"), type: "datetime-local" },
        { name: "to", label: t("field.to"), type: "datetime-local" },
      ]} />
      <${PagedTable} from=${executions} label=${t(title)} columns=${COLUMNS(params.id)} empty=${t("executions.empty")} />
    <//>
  `;
}

/** What it waits for in its step, and until when. */
export function awaited({ aguardando }) {
  if (!aguardando) return "";
  const kind = word("awaited", aguardando.tipo);
  return aguardando.ate ? html`${kind} ${time(aguardando.ate)}` : kind;
}
