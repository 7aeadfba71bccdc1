// Values as people read them: in the language of the page, times in the zone of the organization.
import { timeZone } from "./session.js";
import { locale, t } from "./texts.js";
import { html } from "./lib.js";

const kept = new Map();

/** A moment, as a time element whose title is the moment in UTC; a dash without one. */
export function time(at) {
  return at ? html`<time datetime=${at} title=${at}>${moment(at)}</time>` : "–";
}

export function moment(at) {
  return formatter("date", { dateStyle: "short", timeStyle: "medium" }).format(new Date(at));
}

export function clock(at) {
  return formatter("clock", { timeStyle: "medium" }).format(new Date(at));
}

/** The hour and the minute of Unix seconds, for the axis of a chart. */
export function minute(seconds) {
  return formatter("minute", { timeStyle: "short" }).format(new Date(1000 * seconds));
}

/** The moment that `text`, such as 2026-01-31T12:00, names in the organization's zone. */
export function instant(text) {
  const wall = Date.parse(`${text}Z`);
  const near = wall - offset(wall);
  return new Date(wall - offset(near)).toISOString();
}

/** The other way: a moment as an input of dates and times shows it. */
export function wallTime(at) {
  const moment = Date.parse(at);
  return Number.isNaN(moment) ? "" : new Date(moment + offset(moment)).toISOString().slice(0, 16);
}

/** By how many milliseconds the clocks of the organization's zone are ahead of UTC at a moment. */
function offset(at) {
  const format = new Intl.DateTimeFormat("en", {
    timeZone: timeZone(), hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric",
    minute: "numeric", second: "numeric",
  });
  const of = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  return Date.UTC(of.year, of.month - 1, of.day, of.hour, of.minute, of.second) - Math.floor(at / 1000) * 1000;
}

export function second(seconds) {
  return clock(1000 * seconds);
}

export function count(value) {
  return value === null || value === undefined ? "–" : formatter("count", null).format(value);
}

/** A share of one as percent. */
export function share(value) {
  if (value === null || value === undefined) return "–";
  return formatter("share", null, { style: "percent", maximumFractionDigits: 1 }).format(value);
}

/** Seconds as "3 min 20 s". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const whole = Math.max(0, Math.round(seconds));
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([size]) => whole >= size);
  if (first < 0) return "0 s";
  let rest = whole;
  return parts.slice(first, first + 2).map(([size, unit]) => {
    const amount = Math.floor(rest / size);
    rest -= amount * size;
    return amount ? `${amount} ${unit}` : "";
  }).filter(Boolean).join(" ");
}

export function milliseconds(value) {
  return value === null || value === undefined ? "–" : `${count(value)} ms`;
}

/** Bytes, in thousands of them: "1.2 MB". */
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const [unit, size] = [["megabyte", 1e6], ["kilobyte", 1e3]].find(([, each]) => value >= each) ?? ["byte", 1];
  return formatter(unit, null, { style: "unit", unit, unitDisplay: unit === "byte" ? "long" : "short", maximumFractionDigits: 1 }).format(value / size);
}

/** Coins, and what they are in BRL: 10,000 are one (C25.2). */
export function coins(value) {
  if (value === null || value === undefined) return "–";
  const money = formatter("money", null, { style: "currency", currency: "BRL", maximumFractionDigits: 4 });
  return t("format.coins", { coins: count(value), money: money.format(value / 10000) });
}

function formatter(name, date, number) {
  const key = `${name} ${locale()} ${timeZone()}`;
  let found = kept.get(key);
  if (!found) {
    found = date
      ? new Intl.DateTimeFormat(locale(), { ...date, timeZone: timeZone() })
      : new Intl.NumberFormat(locale(), number ?? { maximumFractionDigits: 2 });
    kept.set(key, found);
  }
  return found;
}
