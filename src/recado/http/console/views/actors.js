// What runs: the tree of actors, how each fares, and restarting one (C34.1).
import { html, useMemo, useState } from "../lib.js";
import { post } from "../api.js";
import { useLive } from "../live.js";
import { Badge, Page } from "../parts/page.js";
import { Action } from "../parts/action.js";
import { LiveState } from "../parts/live_state.js";
import { LiveTable, inOrder } from "../parts/live_table.js";
import { Empty } from "../parts/states.js";
import { count, time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/actors";
export const title = "actors.title";

const PLACES = { num: "numbers", wbh: "webhooks" }; // by the prefix of an id
const TONES = { running: "good", backing_off: "bad", stopped: "" };
const TROUBLE = { backing_off: 2, stopped: 1, running: 0 };

const COLUMNS = (root) => [
  { name: t("actors.actor"), sort: (each) => each.path, cell: (each) => html`<${Name} actor=${each} root=${root} />` },
  { name: t("actors.kind"), sort: (each) => each.kind, cell: (each) => each.kind },
  { name: t("field.status"), sort: (each) => TROUBLE[each.state],
    cell: (each) => html`<${Badge} tone=${TONES[each.state]}>${word("actorState", each.state)}<//>` },
  { name: t("actors.restart"), cell: (each) => html`
    <${Action} scope="ops:write" label=${t("actors.restart")} describe=${t("actors.restartOf", { path: each.path })}
      run=${() => post("/v2/ops/actors/restart", { path: each.path })}
      confirm=${{ title: t("actors.restartTitle"), text: t("actors.restartText", { path: each.path }) }} />` },
  { name: t("actors.mailbox"), number: true, sort: (each) => each.mailbox, cell: (each) => count(each.mailbox) },
  { name: t("actors.handled"), number: true, sort: (each) => each.handled, cell: (each) => count(each.handled) },
  { name: t("actors.restarts"), number: true, sort: (each) => each.restarts, cell: (each) => count(each.restarts) },
  { name: t("actors.lastFailure"), sort: (each) => each.lastFailure?.at ?? "", cell: (each) => html`<${Fault} failure=${each.lastFailure} />` },
  { name: t("actors.upSince"), sort: (each) => each.upSince ?? "", cell: (each) => time(each.upSince) },
];

export function render() {
  const live = useLive();
  const [sorted, setSorted] = useState({ by: null, down: false });
  const all = inOrder([...live.actors.values()], [{ sort: (each) => each.path }], { by: 0, down: false }); // parents first
  const root = Math.min(...all.map((each) => depth(each.path)));
  const columns = useMemo(() => COLUMNS(root), [root]);
  return html`
    <${Page} title=${t(title)} actions=${html`<${LiveState} live=${live} />`}>
      <p class="quiet">${t("actors.about")}</p>
      ${all.length || live.state === "starting"
        ? html`<${LiveTable} label=${t(title)} columns=${columns} items=${inOrder(all, columns, sorted)}
            rowKey=${(each) => each.path} sorted=${sorted} onSort=${setSorted} />`
        : html`<${Empty} text=${t("actors.empty")} />`}
    <//>
  `;
}

/** Its name, below that of its parent; without the organization and the environment, which are those of the page. */
function Name({ actor, root }) {
  const name = actor.path.slice(actor.path.lastIndexOf("/") + 1).replace(/^org_\w+:((test|live):)?/, "");
  const [, id, kind] = /((num|wbh)_\w+)$/.exec(name) ?? [];
  return html`<span class=${`tree-${Math.min(4, depth(actor.path) - root)}`} title=${actor.path}>
    ${kind ? html`<a href=${href(`/${PLACES[kind]}/${id}`)}>${name}</a>` : name}</span>`;
}

function Fault({ failure }) {
  return failure ? html`${time(failure.at)} <code>${failure.type}</code> <code>${failure.where}</code>` : "–";
}

function depth(path) {
  return path.split("/").length;
}
