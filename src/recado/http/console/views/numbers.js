// All numbers, live: what each sends, what waits and why (C34.2).
import { html, useMemo, useState } from "../lib.js";
import { useLive } from "../live.js";
import { Badge, Page } from "../parts/page.js";
import { Chart } from "../parts/chart.js";
import { LiveState } from "../parts/live_state.js";
import { LiveTable, inOrder } from "../parts/live_table.js";
import { Empty } from "../parts/states.js";
import { count, duration, share } from "../format.js";
import { TONES, doing, due, paused, trouble } from "../trouble.js";
import { href } from "../router.js";
import { t } from "../texts.js";

export const path = "/numbers";
export const title = "numbers.title";

const COLUMNS = () => [
  { name: t("numbers.number"), sort: (each) => each.displayPhone, cell: (each) => html`
    <a href=${href(`/numbers/${each.numberId}`)}>${each.displayPhone}</a>` },
  { name: t("numbers.doing"), cell: (each) => html`<${Doing} number=${each} />` },
  { name: t("numbers.perSecond"), number: true, sort: (each) => each.rate.sentLastSecond,
    cell: (each) => `${count(each.rate.sentLastSecond)} / ${count(each.rate.perSecond)}` },
  { name: t("numbers.lastMinute"), number: true, sort: (each) => each.rate.sentLastMinute,
    cell: (each) => count(each.rate.sentLastMinute) },
  { name: t("numbers.due"), number: true, sort: due, cell: (each) => count(due(each)) },
  { name: t("field.oldest"), number: true, sort: (each) => each.oldestAgeSeconds,
    cell: (each) => (due(each) ? duration(each.oldestAgeSeconds) : "–") },
  { name: t("numbers.drain"), number: true, cell: (each) => duration(each.drainSeconds) },
  { name: t("numbers.scheduled"), number: true, sort: (each) => each.queue.scheduled,
    cell: (each) => count(each.queue.scheduled) },
  { name: t("numbers.day"), number: true, sort: (each) => each.day.used / each.day.limit,
    cell: (each) => `${count(each.day.used)} / ${count(each.day.limit)}` },
  { name: t("numbers.errors"), number: true, sort: (each) => each.errorRate5m, cell: (each) => share(each.errorRate5m) },
];

const FILTERS = {
  all: () => true,
  troubled: (each) => trouble(each) > 0,
  waiting: (each) => due(each) > 0,
  paused,
};

export function render() {
  const live = useLive();
  const [filter, setFilter] = useState("all");
  const [sought, setSought] = useState("");
  const [sorted, setSorted] = useState({ by: null, down: false });
  const columns = useMemo(COLUMNS, []);
  const found = [...live.numbers.values()].filter((each) => FILTERS[filter](each) && holds(each, sought));
  const items = sorted.by === null ? byTrouble(found) : inOrder(found, columns, sorted);
  return html`
    <${Page} title=${t(title)} actions=${html`<${LiveState} live=${live} />`}>
      ${live.sums && html`<${Sums} sums=${live.sums} />`}
      ${live.numbers.size > 0 && html`<div class="charts"><${Flow} history=${live.history} /></div>`}
      <div class="filters">
        <label>${t("numbers.filter")} <select onChange=${(event) => setFilter(event.target.value)}>
          ${Object.keys(FILTERS).map((each) => html`
            <option value=${each} selected=${each === filter}>${t(`numbers.filter.${each}`)}</option>`)}
        </select></label>
        <label>${t("numbers.search")} <input type="search" value=${sought}
          onInput=${(event) => setSought(event.target.value.trim())} /></label>
        <span class="quiet" role="status">${t("table.shown", { shown: count(items.length) })}</span>
      </div>
      ${live.state !== "starting" && !live.numbers.size
        ? html`<${Empty} text=${t("numbers.empty")} />`
        : !items.length && live.numbers.size
          ? html`<${Empty} text=${t("numbers.none")} />`
          : html`<${LiveTable} label=${t(title)} columns=${columns} items=${items} rowKey=${(each) => each.numberId}
              sorted=${sorted} onSort=${setSorted} />`}
    <//>
  `;
}

export function Doing({ number }) {
  return html`<${Badge} tone=${TONES[trouble(number)]}>${doing(number)}<//>`;
}

function Sums({ sums }) {
  const rows = ["numbers", "sentLastSecond", "sentLastMinute", "due", "scheduled", "inFlight"];
  return html`<dl class="sums">${rows.map((each) => html`
    <div><dt>${t(`numbers.sum.${each}`)}</dt><dd>${count(sums[each])}</dd></div>`)}</dl>`;
}

function Flow({ history }) {
  const [at, sent, waiting] = [0, 1, 2].map((column) => history.map((look) => look[column]));
  return html`
    <${Chart} title=${t("numbers.rateChart")} data=${[at, sent]} series=${[{ label: t("numbers.sent") }]} />
    <${Chart} title=${t("numbers.queueChart")} data=${[at, waiting]} series=${[{ label: t("numbers.due") }]} />
  `;
}

/** The most troubled first, then those with the longest queue; the quiet ones, most of many, stay as they are. */
function byTrouble(numbers) {
  const [ranked, quiet] = [[], []];
  for (const each of numbers) {
    const [rank, waiting] = [trouble(each), due(each)];
    if (rank || waiting) ranked.push([rank, waiting, each]);
    else quiet.push(each);
  }
  ranked.sort(([a, x, one], [b, y, two]) => b - a || y - x || (one.numberId < two.numberId ? -1 : 1));
  return [...ranked.map(([, , each]) => each), ...quiet];
}

/** By the end of its phone or its id: a masked phone shows its last digits. */
function holds(number, sought) {
  return !sought || number.displayPhone.includes(sought) || number.numberId.includes(sought);
}
