// One execution of a journey: the trail of its steps (C9.10).
import { html } from "../lib.js";
import { part, post } from "../api.js";
import { useGet } from "../load.js";
import { Action } from "../parts/action.js";
import { Facts, Json, Page, Section } from "../parts/page.js";
import { Empty, Loaded } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { State } from "../parts/tones.js";
import { time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";
import { awaited } from "./executions.js";

export const path = "/journeys/:id/executions/:executionId";
export const title = "executions.execution";

const LOOK_EVERY = 5; // seconds

const COLUMNS = () => [
  { name: t("executions.at"), cell: (each) => time(each.em) },
  { name: t("executions.step"), cell: (each) => html`<code>${each.passo}</code>` },
  { name: t("journeys.kind"), cell: (each) => word("stepKind", each.tipo) },
  { name: t("executions.result"), cell: (each) => word("result", each.resultado) },
  { name: t("executions.detail"), cell: (each) => each.detalhe && word("skipped", each.detalhe) },
  { name: t("field.message"), cell: (each) => each.messageId && html`
    <a href=${href(`/messages/${each.messageId}`)}>${each.messageId}</a>` },
];

export function render({ params }) {
  const address = `/v2/journeys/${part(params.id)}/executions/${part(params.executionId)}`;
  const execution = useGet(address, {}, { every: LOOK_EVERY });
  const cancel = html`
    <${Action} scope="campaigns:write" label=${t("executions.cancel")} danger run=${() => post(`${address}/cancel`)} done=${execution.reload}
      confirm=${{ title: t("executions.cancel.title"), text: t("executions.cancel.text") }} />`;
  return html`
    <${Page} title=${t(title)} actions=${execution.data?.status === "ativa" && cancel}
      back=${{ href: href(`/journeys/${params.id}/executions`), text: t("executions.title") }}>
      <${Loaded} from=${execution}>${(found) => html`<${Execution} execution=${found} />`}<//>
    <//>
  `;
}

function Execution({ execution }) {
  return html`
    <p><${State} kind="executionStatus" value=${execution.status} /></p>
    <${Facts} rows=${[
      [t("field.id"), html`<code>${execution.id}</code>`],
      [t("executions.reason"), execution.motivo && word("endReason", execution.motivo)],
      [t("field.contact"), html`<a href=${href(`/contacts/${execution.contactId}`)}>${execution.contactExternalId ?? execution.contactId}</a>`],
      [t("executions.step"), execution.passoAtual],
      [t("executions.awaits"), awaited(execution)],
      [t("executions.origin"), word("trigger", execution.origem)],
      [t("journeys.version"), execution.versao],
      [t("executions.startedAt"), time(execution.iniciadaEm)],
      [t("executions.endedAt"), execution.encerradaEm && time(execution.encerradaEm)],
    ]} />
    <${Section} title=${t("executions.trail")}>
      ${execution.passos.length === 0
        ? html`<${Empty} text=${t("executions.trail.empty")} />`
        : html`<${Table} label=${t("executions.trail")} columns=${COLUMNS()} items=${execution.passos}
            rowKey=${(each) => `${each.passo} ${each.em}`} />`}
    <//>
    ${Object.keys(execution.entrada).length > 0 && html`
      <${Section} title=${t("executions.entry")}><${Json} value=${execution.entrada} label=${t("executions.entry")} /><//>
    `}
  `;
}
