// How far many messages are: a bar of their states, and the numbers.
import { html } from "../lib.js";
import { Facts } from "./page.js";
import { count } from "../format.js";
import { t } from "../texts.js";

const STATES = ["read", "delivered", "sent", "queued", "failed", "archived"]; // each accepted message is in one of them

export function Progress({ totals }) {
  const shares = sharesOf(totals);
  const told = shares.map(({ state, number }) => `${t(`totals.${state}`)}: ${count(number)}`).join(", ");
  return html`
    <svg class="progress" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=${told || t("totals.none")}>
      <rect class="rest" x="0" y="0" width="100" height="8" />
      ${shares.map(({ state, from, width }) => html`<rect class=${state} x=${from} y="0" width=${width} height="8" />`)}
    </svg>
  `;
}

export function Totals({ totals }) {
  return html`
    <${Progress} totals=${totals} />
    <${Facts} rows=${["requested", "accepted", "skipped", ...STATES].map((each) => [t(`totals.${each}`), count(totals[each])])} />
  `;
}

function sharesOf(totals) {
  const all = STATES.reduce((sum, state) => sum + totals[state], 0);
  let from = 0;
  return STATES.filter((state) => totals[state] > 0).map((state) => {
    const share = { state, number: totals[state], from, width: (100 * totals[state]) / all };
    from += share.width;
    return share;
  });
}
