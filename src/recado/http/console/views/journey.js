// One journey: its graph with the numbers of each step, its problems, and its pause and activation (C9).
import { html } from "../lib.js";
import { part, post } from "../api.js";
import { useGet } from "../load.js";
import { Action } from "../parts/action.js";
import { Graph } from "../parts/graph.js";
import { Facts, Page, Section } from "../parts/page.js";
import { Loaded } from "../parts/states.js";
import { stepText } from "../parts/steps.js";
import { Table } from "../parts/table.js";
import { State } from "../parts/tones.js";
import { count, time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";
import { triggerOf } from "./journeys.js";

export const path = "/journeys/:id";
export const title = "journeys.journey";

const LOOK_EVERY = 10; // seconds; the numbers of steps are written every five

export function render({ params }) {
  const address = `/v2/journeys/${part(params.id)}`;
  const journey = useGet(address, {}, { every: LOOK_EVERY });
  const steps = useGet(`${address}/steps`, {}, { every: LOOK_EVERY });
  const found = journey.data;
  return html`
    <${Page} title=${found?.name ?? params.id} back=${{ href: href("/journeys"), text: t("journeys.title") }}
      actions=${found && html`<${Moves} journey=${found} done=${journey.reload} />`}>
      <${Loaded} from=${journey}>${(each) => html`<${Journey} journey=${each} steps=${steps} />`}<//>
    <//>
  `;
}

function Moves({ journey, done }) {
  const move = (to) => () => post(`/v2/journeys/${part(journey.id)}/${to}`, undefined, {
    headers: { "If-Match": `"${journey.revisao}"` },
  });
  const { status } = journey;
  return html`
    ${status === "ativa" && html`
      <${Action} scope="campaigns:write" label=${t("action.pause")} run=${move("pause")} done=${done} confirm=${{
        title: t("journeys.pause.title"), text: t("journeys.pause.text") }} />`}
    ${status === "pausada" && html`<${Action} scope="campaigns:write" label=${t("action.resume")} run=${move("activate")} done=${done} />`}
    ${status === "rascunho" && html`
      <${Action} scope="campaigns:write" label=${t("journeys.activate")} run=${move("activate")} done=${done} confirm=${{
        title: t("journeys.activate.title"), text: t("journeys.activate.text") }} />`}
    ${status !== "arquivada" && html`
      <${Action} scope="campaigns:write" label=${t("journeys.archive")} danger run=${move("archive")} done=${done} confirm=${{
        title: t("journeys.archive.title"), text: t("journeys.archive.text") }} />`}
  `;
}

function Journey({ journey, steps }) {
  const numbers = new Map((steps.data?.items ?? []).map((each) => [each.passo, each]));
  const { execucoes: runs, silencio: quiet, tetoDeFrequencia: cap } = journey;
  return html`
    <p><${State} kind="journeyStatus" value=${journey.status} /></p>
    ${journey.descricao && html`<p>${journey.descricao}</p>`}
    ${journey.pausadaPor && html`<${Paused} by=${journey.pausadaPor} />`}
    ${journey.problemas.length > 0 && html`
      <div class="notice warn">
        <p><strong>${t("journeys.problems")}</strong></p>
        <ul>${journey.problemas.map((each) => html`<li>${each}</li>`)}</ul>
      </div>
    `}
    <${Section} title=${t("journeys.executions")}>
      <${Facts} rows=${["ativa", "concluida", "cancelada", "erro"].map((each) => [
        html`<a href=${href(`/journeys/${journey.id}/executions`, { status: each })}>${word("executionStatus", each)}</a>`,
        count(runs[each]),
      ])} />
      <p><a href=${href(`/journeys/${journey.id}/executions`)}>${t("journeys.allExecutions")}</a></p>
    <//>
    <${Section} title=${t("journeys.graph")}>
      <${Graph} steps=${journey.passos} first=${journey.inicio} numbers=${numbers} label=${t("journeys.graph.label")} />
    <//>
    <${Section} title=${t("journeys.steps")}>
      <${Loaded} from=${steps}>${(found) => html`
        <p class="quiet">${t("journeys.stepsAt")} ${time(found.atualizadoEm)}</p>
        <${Table} label=${t("journeys.steps")} columns=${COLUMNS(journey)} items=${found.items} rowKey=${(each) => each.passo} />
      `}<//>
    <//>
    <${Section} title=${t("section.facts")}>
      <${Facts} rows=${[
        [t("field.id"), html`<code>${journey.id}</code>`],
        [t("journeys.version"), journey.versao],
        [t("journeys.trigger"), triggerOf(journey)],
        [t("journeys.reentry"), word("reentry", journey.reentrada)],
        [t("journeys.quiet"), quiet && `${quiet.inicio} – ${quiet.fim}`],
        [t("journeys.cap"), cap && t("journeys.capText", { messages: cap.mensagens, days: cap.dias })],
        [t("journeys.goal"), journey.meta?.evento],
        [t("field.timeZone"), journey.fusoHorario],
        [t("journeys.replacedBy"), journey.substituidaPor && html`
          <a href=${href(`/journeys/${journey.substituidaPor}`)}>${journey.substituidaPor}</a>`],
        [t("journeys.madeFrom"), journey.versaoDe && html`
          <a href=${href(`/journeys/${journey.versaoDe}`)}>${journey.versaoDe}</a>`],
        [t("journeys.activatedAt"), journey.ativadaEm && time(journey.ativadaEm)],
        [t("journeys.pausedAt"), journey.pausadaEm && time(journey.pausadaEm)],
        [t("journeys.archivedAt"), journey.arquivadaEm && time(journey.arquivadaEm)],
        [t("field.createdAt"), time(journey.createdAt)],
        [t("field.updatedAt"), time(journey.updatedAt)],
      ]} />
    <//>
  `;
}

function Paused({ by }) {
  return html`
    <div class="notice warn" role="status">
      <p><strong>${word("hindrance", by.motivo)}</strong></p>
      <p>${t("journeys.pausedBy", { step: by.passo, label: by.rotulo ?? "" })} ${time(by.em)}</p>
    </div>
  `;
}

function COLUMNS(journey) {
  const byId = new Map(journey.passos.map((step) => [step.id, step]));
  const standing = (each) => each.aguardando === 0 ? count(0) : html`
    <a href=${href(`/journeys/${journey.id}/executions`, { passo: each.passo })}>${count(each.aguardando)}</a>`;
  return [
    { name: t("journeys.step"), cell: (each) => html`<code>${each.passo}</code>` },
    { name: t("journeys.kind"), cell: (each) => stepText(byId.get(each.passo) ?? each) },
    { name: t("steps.entraram"), cell: (each) => count(each.entraram), number: true },
    { name: t("steps.aguardando"), cell: standing, number: true },
    { name: t("steps.concluiram"), cell: (each) => count(each.concluiram), number: true },
    { name: t("steps.pulados"), cell: (each) => count(each.pulados), number: true },
    { name: t("steps.erros"), cell: (each) => count(each.erros), number: true },
    { name: t("steps.more"), cell: more },
  ];
}

/** What only some kinds of steps count, in words. */
function more({ mensagens, sim, nao, ramos, sucesso, falha }) {
  const told = [
    ...Object.entries(mensagens ?? {}).map(([name, number]) => [word("steps", name), number]),
    ...(ramos ?? []).map(({ nome, total }) => [nome, total]),
    ...Object.entries({ sim, nao, sucesso, falha }).map(([name, number]) => [word("steps", name), number]),
  ];
  return told.filter(([, number]) => number !== undefined).map(([name, number]) => `${name}: ${count(number)}`).join(", ");
}
