// One number: its gates, its pace, its last hour, what failed; pausing and resuming it (C34.1, C34.2).
import { html } from "../lib.js";
import { part, post } from "../api.js";
import { useGet } from "../load.js";
import { useLive } from "../live.js";
import { Badge, Facts, Page, Section } from "../parts/page.js";
import { Action } from "../parts/action.js";
import { Chart } from "../parts/chart.js";
import { LiveState } from "../parts/live_state.js";
import { Empty, Loaded } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Doing } from "./numbers.js";
import { Circuit } from "./providers.js";
import { count, duration, milliseconds, share, time } from "../format.js";
import { due, paused } from "../trouble.js";
import { href } from "../router.js";
import { TEXTS, t, word } from "../texts.js";

export const path = "/numbers/:id";
export const title = "number.title";

const DETAIL_EVERY = 15; // seconds: its series has a point a minute; what changes by the second comes by the stream

export function render({ params }) {
  const address = `/v2/ops/numbers/${part(params.id)}`;
  const detail = useGet(address, {}, { every: DETAIL_EVERY });
  const live = useLive();
  return html`
    <${Loaded} from=${detail}>
      ${(read) => html`<${One} number=${newest(read, detail.at, live.numbers.get(params.id))} live=${live}
        address=${address} reload=${detail.reload} />`}
    <//>
  `;
}

/** What was read, with what the stream has told since. */
function newest(read, at, told) {
  return told && told.at > Date.parse(at) ? { ...read, ...told } : read;
}

function One({ number, live, address, reload }) {
  const stopped = paused(number);
  return html`
    <${Page} title=${t("number.of", { phone: number.displayPhone })} back=${{ href: href("/numbers"), text: t("numbers.title") }}
      actions=${html`
        <${LiveState} live=${live} />
        ${stopped
          ? html`<${Action} scope="ops:write" label=${t("number.resume")} run=${() => post(`${address}/resume`)} done=${reload} />`
          : html`<${Action} scope="ops:write" label=${t("number.pause")} run=${() => post(`${address}/pause`)} done=${reload} danger
              confirm=${{ title: t("number.pauseTitle"), text: t("number.pauseText") }} />`}
      `}>
      <p><${Doing} number=${number} /> ${number.holding && html`<${Holding} holding=${number.holding} />`}</p>
      <${Facts} rows=${[
        [t("numbers.perSecond"), `${count(number.rate.sentLastSecond)} / ${count(number.rate.perSecond)}`],
        [t("number.tokens"), count(number.rate.tokens)],
        [t("numbers.lastMinute"), count(number.rate.sentLastMinute)],
        [t("field.inFlight"), count(number.inFlight)],
        [t("number.uncertain"), count(number.uncertain)],
        [t("numbers.drain"), duration(number.drainSeconds)],
        [t("field.oldest"), due(number) ? duration(number.oldestAgeSeconds) : "–"],
        [t("number.queue.critical"), count(number.queue.critical)],
        [t("number.queue.normal"), count(number.queue.normal)],
        [t("number.queue.bulk"), count(number.queue.bulk)],
        [t("numbers.scheduled"), count(number.queue.scheduled)],
        [t("field.id"), html`<code>${number.numberId}</code>`],
      ]} />
      <p><a href=${href("/messages", { numberId: number.numberId })}>${t("number.messages")}</a></p>
      <${Gates} number=${number} />
      <${Series} series=${number.series} />
      <${Failures} number=${number} />
    <//>
  `;
}

/** What it waits for, until when, and what to do about it. */
function Holding({ holding }) {
  const advice = `reason.${holding.reason}.advice`;
  return html`
    ${holding.until && html`<span>${t("number.until")} ${time(holding.until)}</span>`} ${" "}
    ${advice in TEXTS && html`<span class="quiet">${t(advice)}</span>`}
  `;
}

/** What must be open for a message to leave, each with what it says now. */
function Gates({ number }) {
  const reason = number.holding?.reason;
  const { tier, day, rate } = number;
  const closed = (...reasons) => reasons.includes(reason);
  const gates = [
    { name: "service", open: !closed("number_state") && ["connected", "flagged"].includes(number.status),
      says: word("numberStatus", number.status) },
    { name: "operator", open: !paused(number), says: t(paused(number) ? "number.paused" : "number.notPaused") },
    { name: "quality", open: !closed("quality"), says: word("quality", number.qualityRating) },
    { name: "circuit", open: number.breaker === "closed", says: html`<${Circuit} state=${number.breaker} />` },
    { name: "provider", open: !closed("number_paused"), says: t(closed("number_paused") ? "number.slowed" : "number.notSlowed") },
    { name: "day", open: day.used < day.limit, says: `${count(day.used)} / ${count(day.limit)}` },
    { name: "tier", open: !closed("tier_limit"), says: tier.limit === null ? t("number.noLimit")
      : `${count(tier.used)} / ${count(tier.limit)}` },
    { name: "rate", open: rate.tokens >= 1, says: t("number.tokensOf", { tokens: count(rate.tokens), rate: count(rate.perSecond) }) },
    { name: "actor", open: number.actor.state !== "backing_off",
      says: `${word("actorState", number.actor.state)} · ${t("number.restarts", { restarts: count(number.actor.restarts) })}` },
  ];
  return html`
    <${Section} title=${t("number.gates")}>
      <${Table} label=${t("number.gates")} items=${gates} rowKey=${(each) => each.name} columns=${[
        { name: t("number.gate"), cell: (each) => t(`gate.${each.name}`) },
        { name: t("field.status"), cell: (each) => html`<${Badge} tone=${each.open ? "good" : "bad"}>
          ${t(each.open ? "gate.open" : "gate.closed")}<//>` },
        { name: t("number.says"), cell: (each) => each.says },
      ]} />
      ${number.actor.lastFailure && html`
        <p class="quiet">${t("number.actorFailed")} ${time(number.actor.lastFailure.at)}:
          <code>${number.actor.lastFailure.type}</code> <code>${number.actor.lastFailure.where}</code></p>`}
    <//>
  `;
}

function Series({ series }) {
  const at = series.map((each) => Date.parse(each.minute) / 1000);
  const of = (name) => series.map((each) => each[name]);
  return html`
    <${Section} title=${t("number.hour")}>
      <div class="charts">
        <${Chart} title=${t("number.perMinute")} data=${[at, of("sent"), of("failed")]}
          series=${[{ label: t("numbers.sent") }, { label: t("number.failed") }]} />
        <${Chart} title=${t("numbers.queueChart")} data=${[at, of("queued")]} series=${[{ label: t("numbers.due") }]} />
        <${Chart} title=${t("number.p95")} data=${[at, of("p95Ms")]} series=${[{ label: "p95", format: milliseconds }]} />
      </div>
    <//>
  `;
}

function Failures({ number }) {
  const codes = Object.entries(number.lastErrors).sort(([, a], [, b]) => b - a);
  return html`
    <${Section} title=${t("number.errors")}>
      <p>${t("number.errorRate", { share: share(number.errorRate5m) })}
        ${codes.map(([code, times]) => html` <${Badge} tone="bad">${word("failure", code)}: ${count(times)}<//>`)}</p>
      ${number.failures.length
        ? html`<${Table} label=${t("number.errors")} items=${number.failures} rowKey=${(each) => each.messageId + each.at} columns=${[
            { name: t("number.when"), cell: (each) => time(each.at) },
            { name: t("number.code"), cell: (each) => word("failure", each.code) },
            { name: t("field.message"), cell: (each) => html`<a href=${href(`/messages/${each.messageId}`)}>${each.messageId}</a>` },
          ]} />`
        : html`<${Empty} text=${t("number.noErrors")} />`}
    <//>
  `;
}
