// Journeys: which run, and how many go through each (C9.1).
import { html, useState } from "../lib.js";
import { usePages } from "../load.js";
import { Filters } from "../parts/filters.js";
import { choices } from "../parts/form.js";
import { Page } from "../parts/page.js";
import { State } from "../parts/tones.js";
import { PagedTable } from "../parts/table.js";
import { count, time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/journeys";
export const title = "journeys.title";

const STATUSES = ["rascunho", "ativa", "pausada", "arquivada"];

const COLUMNS = () => [
  { name: t("field.name"), cell: (each) => html`<a href=${href(`/journeys/${each.id}`)}>${each.name}</a>` },
  { name: t("field.status"), cell: (each) => html`<${State} kind="journeyStatus" value=${each.status} />` },
  { name: t("journeys.version"), cell: (each) => each.versao, number: true },
  { name: t("journeys.trigger"), cell: (each) => triggerOf(each) },
  { name: t("field.channels"), cell: (each) => each.canais.map((channel) => word("channel", channel)).join(", ") },
  { name: t("executionStatus.ativa"), cell: (each) => count(each.execucoes.ativa), number: true },
  { name: t("executionStatus.concluida"), cell: (each) => count(each.execucoes.concluida), number: true },
  { name: t("executionStatus.cancelada"), cell: (each) => count(each.execucoes.cancelada), number: true },
  { name: t("executionStatus.erro"), cell: (each) => count(each.execucoes.erro), number: true },
  { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
];

export function render({ query }) {
  const [filters, setFilters] = useState(query);
  const journeys = usePages("/v2/journeys", filters, 100);
  return html`
    <${Page} title=${t(title)}>
      <${Filters} values=${filters} apply=${setFilters} fields=${[
        { name: "status", label: t("field.status"), type: "select", options: choices("journeyStatus", STATUSES) },
      ]} />
      <${PagedTable} from=${journeys} label=${t(title)} columns=${COLUMNS()} empty=${t("journeys.empty")} />
    <//>
  `;
}

/** What brings contacts in: its kind, and which list, segment or event. */
export function triggerOf({ gatilho, lista, segmento }) {
  const which = lista?.nome ?? segmento?.nome ?? gatilho.nome ?? gatilho.listId ?? gatilho.segmentId;
  return [word("trigger", gatilho.tipo), which].filter(Boolean).join(": ");
}
