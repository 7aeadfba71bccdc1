// A table of records, and one with pages.
import { html } from "../lib.js";
import { Empty, Loaded } from "./states.js";
import { clock, count } from "../format.js";
import { t } from "../texts.js";

/**
 * `columns`: [{name, cell, number?, wide?}] with `cell(item)` a text or an element, `number` for what stands to the
 * right, and `wide` for sentences; the first one names its row. `label`: what the table shows, for those who listen. `rowKey(item)`: what tells rows
 * apart, their `id` unless said.
 */
export function Table({ label, columns, items, rowKey = (item) => item.id }) {
  return html`
    <div class="scroll" tabindex="0" role="region" aria-label=${label}>
      <table>
        <thead><tr>${columns.map((each) => html`<th scope="col" class=${kind(each)}>${each.name}</th>`)}</tr></thead>
        <tbody>
          ${items.map((item) => html`
            <tr key=${rowKey(item)}>
              ${columns.map((each, index) => index === 0
                ? html`<th scope="row" class=${kind(each)}>${each.cell(item)}</th>`
                : html`<td class=${kind(each)}>${each.cell(item)}</td>`)}
            </tr>
          `)}
        </tbody>
      </table>
    </div>
  `;
}

/**
 * What `usePages` (or `useLoad`, of a list) reads, as a table with its states and its next page. `empty`: a sentence
 * for when nothing is there; the rest goes to `Table`.
 */
export function PagedTable({ from, empty, ...table }) {
  return html`
    <${Loaded} from=${from}>
      ${(data) => {
        const items = data.items ?? data;
        if (!items.length && !from.more) return html`<${Empty} text=${empty} />`;
        return html`
          ${items.length ? html`<${Table} ...${table} items=${items} />` : html`<${Empty} text=${t("table.noneSoFar")} />`}
          <${More} from=${from} shown=${items.length} />
        `;
      }}
    <//>
  `;
}

/** How many of a list are shown and since when, and what shows them anew, or the next ones. */
export function More({ from, shown }) {
  return html`
    <p class="pages">
      <span class="quiet">${howMany(shown, from)} · ${t("table.at", { at: clock(from.at) })}</span>
      <button type="button" disabled=${from.loading} onClick=${from.reload}>${t("table.reload")}</button>
      ${from.more && html`
        <button type="button" disabled=${from.loading} onClick=${from.more}>${t("table.more")}</button>
      `}
    </p>
  `;
}

function howMany(length, { total, totalEstimated }) {
  if (total === undefined) return t("table.shown", { shown: count(length) });
  return t(totalEstimated ? "table.ofAtLeast" : "table.of", { shown: count(length), total: count(total) });
}

function kind(column) {
  return column.number ? "number" : column.wide ? "wide" : undefined;
}
