// A table of thousands of rows: only those in sight are made, so that a tick costs the same however many there are.
import { html, useLayoutEffect, useRef, useState } from "../lib.js";
import { t } from "../texts.js";

const ROW = 40; // pixels, as console.css has it
const BEYOND = 6; // rows that are made above and below those in sight

/**
 * `columns` as of `Table`, with `sort(item)`, a number or a text, for those that one can sort by; `sorted`: {by, down}
 * with `by` the index of a column or null for the order given; `onSort` gets the next one. `items`: in their order.
 */
export function LiveTable({ label, columns, items, rowKey, sorted, onSort }) {
  const box = useRef(null);
  const [[first, rows], setWindow] = useState([0, 30]);
  useLayoutEffect(() => {
    const look = () => {
      const { scrollTop, clientHeight } = box.current;
      const next = [Math.max(0, Math.floor(scrollTop / ROW) - BEYOND), Math.ceil(clientHeight / ROW) + 2 * BEYOND];
      setWindow((before) => (before[0] === next[0] && before[1] === next[1] ? before : next));
    };
    look();
    const resize = new ResizeObserver(look);
    resize.observe(box.current);
    box.current.addEventListener("scroll", look, { passive: true });
    return () => resize.disconnect();
  }, []);
  const start = Math.min(first, Math.max(0, items.length - rows));
  const shown = items.slice(start, start + rows);
  const after = items.length - start - shown.length;
  return html`
    <div class="scroll rows" tabindex="0" role="region" aria-label=${label} ref=${box}>
      <table aria-rowcount=${items.length + 1}>
        <thead><tr aria-rowindex="1">${columns.map((each, index) => html`
          <${Heading} column=${each} order=${sorted.by === index ? (sorted.down ? "descending" : "ascending") : "none"}
            sort=${() => onSort(next(sorted, index, each))} />`)}</tr></thead>
        <tbody>
          ${start > 0 && html`<${Gap} rows=${start} key="before" />`}
          ${shown.map((item, index) => html`
            <tr key=${rowKey(item)} aria-rowindex=${start + index + 2}>
              ${columns.map((each, place) => place === 0
                ? html`<th scope="row">${each.cell(item)}</th>`
                : html`<td class=${each.number ? "number" : undefined}>${each.cell(item)}</td>`)}
            </tr>
          `)}
          ${after > 0 && html`<${Gap} rows=${after} key="after" />`}
        </tbody>
      </table>
    </div>
  `;
}

/** Items in the order of a column; as they are without one. */
export function inOrder(items, columns, { by, down }) {
  if (by === null) return items;
  const { sort } = columns[by];
  const ranked = items.map((item, index) => [sort(item), index, item]);
  const way = down ? -1 : 1;
  ranked.sort(([a, i], [b, j]) => (a < b ? -way : a > b ? way : i - j));
  return ranked.map(([, , item]) => item);
}

function Heading({ column, order, sort }) {
  const kind = column.number ? "number" : undefined;
  if (!column.sort) return html`<th scope="col" class=${kind}>${column.name}</th>`;
  const mark = { ascending: " ↑", descending: " ↓", none: "" }[order];
  return html`
    <th scope="col" class=${kind} aria-sort=${order}>
      <button type="button" class="sort" title=${t("table.sort")} onClick=${sort}>${column.name}${mark}</button>
    </th>
  `;
}

function Gap({ rows }) {
  const row = useRef(null);
  useLayoutEffect(() => { row.current.style.height = `${rows * ROW}px`; }, [rows]);
  return html`<tr ref=${row} class="gap" aria-hidden="true"></tr>`;
}

/** A column is sorted by one way, then the other, then not. */
function next({ by, down }, index, column) {
  const first = Boolean(column.number); // of figures the largest first
  if (by !== index) return { by: index, down: first };
  return down === first ? { by: index, down: !first } : { by: null, down: false };
}
