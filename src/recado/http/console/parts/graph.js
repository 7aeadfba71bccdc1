// The steps of a journey as a picture, with the numbers of each. What it shows stands in a table beside it, too.
import { html } from "../lib.js";
import { count } from "../format.js";
import { t } from "../texts.js";
import { NODE, layout } from "./graph_layout.js";
import { stepDetail, stepKind } from "./steps.js";

const LONGEST = { line: 25, way: 12 }; // characters
const PAD = 12;
const ON_THE_WAY = { down: 24, aside: 0.28 }; // where the text of a way stands: pixels, and part of the way to the side
const LINES = [22, 42, 66, 88]; // where the lines of a node stand

/** `numbers`: by the id of a step, what GET …/steps tells of it. */
export function Graph({ steps, first, numbers, label }) {
  const { nodes, edges, width, height } = layout(steps, first);
  return html`
    <div class="scroll graph" tabindex="0" role="region" aria-label=${label}>
      <svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="img" aria-label=${t("graph.see")}>
        <defs>
          <marker id="graph-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
            <path d="M 0 0 L 8 4 L 0 8 z" class="head" />
          </marker>
        </defs>
        ${edges.map((edge) => html`<${Edge} edge=${edge} />`)}
        ${edges.map((edge) => html`<${Way} edge=${edge} numbers=${numbers.get(edge.from)} />`)}
        ${nodes.map((node) => html`<${Node} key=${node.id} node=${node} numbers=${numbers.get(node.id)} first=${node.id === first} />`)}
      </svg>
    </div>
  `;
}

function Node({ node: { id, step, x, y }, numbers, first }) {
  const lines = [stepKind(step), stepDetail(step), ...(numbers ? counted(numbers) : [])].filter(Boolean);
  return html`
    <g class=${`node ${first ? "first" : ""}`} transform=${`translate(${x} ${y})`}>
      <title>${[id, ...lines].join("\n")}</title>
      <rect width=${NODE.width} height=${NODE.height} rx="8" />
      ${lines.map((line, at) => html`<text class=${at === 0 ? "kind" : undefined} x=${PAD} y=${LINES[at]}>${short(line, LONGEST.line)}</text>`)}
    </g>
  `;
}

function Edge({ edge: { to, from, points, back } }) {
  return html`
    <g class=${`edge ${back ? "back" : ""}`}>
      <path d=${back ? around(points) : through(points)} marker-end="url(#graph-arrow)"><title>${`${from} → ${to}`}</title></path>
    </g>
  `;
}

/** What an edge is called, and how many took it: on the edge, which is broken there, and above all others. */
function Way({ edge: { way, name, points, back }, numbers }) {
  const called = way === "ramo" ? short(name, LONGEST.way) : way === "proximo" ? "" : t(`steps.${way}`);
  const number = passed(way, name, numbers);
  const text = [called, number === undefined ? "" : count(number)].filter(Boolean).join(" · ");
  if (!text) return null;
  const [{ x, y }, next] = points;
  if (back) return html`<text class="way" x=${x + PAD} y=${y - 6}>${text}</text>`;
  return html`<text class="way" x=${x + ON_THE_WAY.aside * (next.x - x)} y=${y + ON_THE_WAY.down} text-anchor="middle">${text}</text>`;
}

function counted({ entraram, aguardando, mensagens, pulados, erros }) {
  const pairs = (names) => names.map(([name, number]) => `${t(`steps.${name}`)} ${count(number)}`).join(" · ");
  const last = mensagens
    ? [["enviadas", mensagens.enviadas], ["falhas", mensagens.falhas]]
    : [["pulados", pulados], ["erros", erros]];
  return [pairs([["entraram", entraram], ["aguardando", aguardando]]), pairs(last)];
}

/** How many took a way out, where that is counted. */
function passed(way, name, numbers = {}) {
  if (way === "ramo") return numbers.ramos?.find((each) => each.nome === name)?.total;
  return { sim: numbers.sim, nao: numbers.nao, proximo: numbers.sucesso, seFalhar: numbers.falha }[way];
}

function through([start, ...rest]) {
  let [before, path] = [start, `M ${start.x} ${start.y}`];
  for (const point of rest) {
    const middle = (before.y + point.y) / 2;
    path += ` C ${before.x} ${middle}, ${point.x} ${middle}, ${point.x} ${point.y}`;
    before = point;
  }
  return path;
}

function around([start, end]) {
  const x = Math.max(start.x, end.x) + 60;
  return `M ${start.x} ${start.y} C ${x} ${start.y}, ${x} ${end.y}, ${end.x} ${end.y}`;
}

function short(text, most) {
  const letters = [...text];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
}
