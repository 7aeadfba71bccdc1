// What stands in place of data: that it is read, that there is none, that it failed; each says what to do next.
import { html } from "../lib.js";
import { moment } from "../format.js";
import { TEXTS, t } from "../texts.js";

export function Loading() {
  return html`<p class="quiet" role="status">${t("state.loading")}</p>`;
}

/** Nothing is there. `text`: a sentence that says what to do next; children: links or actions. */
export function Empty({ text, children }) {
  return html`<div class="empty"><p>${text}</p>${children}</div>`;
}

/** What failed, and what to do about it. `retry`: a function, where trying again makes sense. */
export function Failure({ error, retry }) {
  return html`
    <div class="notice bad" role="alert">
      <p><strong>${told(error)}</strong></p>
      <p>${advice(error)}</p>
      ${error.requestId && html`<p class="quiet">${t("state.request")} <code>${error.requestId}</code></p>`}
      ${retry && html`<button type="button" onClick=${() => retry()}>${t("state.retry")}</button>`}
    </div>
  `;
}

/**
 * The states of what `useLoad` or `usePages` read, around what shows it: `children(data)`. What is shown although a
 * later reading failed says since when it is stale.
 */
export function Loaded({ from, children }) {
  const data = from.data ?? from.items;
  if (!data) return from.error ? html`<${Failure} error=${from.error} retry=${from.reload} />` : html`<${Loading} />`;
  return html`
    ${from.error && html`<p class="notice warn" role="status">${t("state.stale", { at: moment(from.at) })}</p>`}
    ${from.error && html`<${Failure} error=${from.error} retry=${from.reload} />`}
    ${children(data)}
  `;
}

/** One sentence on what failed: the API's own, which names the fault. */
export function told(error) {
  if (error.status === undefined) return t("error.page");
  if (error.status === 0) return t("error.unreachable");
  return error.message || t("error.status", { status: error.status });
}

function advice(error) {
  const key = [`advice.${error.code}`, `advice.${error.status}`].find((each) => each in TEXTS);
  return t(key ?? "advice.other", { scope: error.meta?.requiredScope ?? "", seconds: error.retryAfter || 30 });
}
