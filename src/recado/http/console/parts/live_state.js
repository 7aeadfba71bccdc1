// Whether what a view shows is of this second, or since when it is stale.
import { html } from "../lib.js";
import { Badge } from "./page.js";
import { Failure } from "./states.js";
import { clock } from "../format.js";
import { t } from "../texts.js";

/** `live`: what `useLive` gives. */
export function LiveState({ live }) {
  if (live.state === "refused") return html`<${Failure} error=${live.error} />`;
  const since = clock(live.since);
  return html`
    <p class="liveness" role="status">
      ${live.state === "live" && html`<${Badge} tone="good">${t("live.live")}<//>`}
      ${live.state === "starting" && html`<${Badge}>${t("live.starting")}<//>`}
      ${live.state === "stale" && html`
        <${Badge} tone="bad">${t("live.stale")}<//> <span>${t(`live.why.${why(live.error)}`, { since })}</span>`}
    </p>
  `;
}

function why(error) {
  return error?.status === 429 ? "tooMany" : "broken";
}
