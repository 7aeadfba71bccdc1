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
