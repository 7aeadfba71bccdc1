// The one table of texts: key → [Portuguese, English]. Each file of `texts/` holds the rows of some views.
// `{name}` in a text is a place for a value: t("table.shown", {shown: 3}).
import { Store } from "./store.js";
import { audience } from "./texts/audience.js";
import { channels } from "./texts/channels.js";
import { content } from "./texts/content.js";
import { frame } from "./texts/frame.js";
import { operators } from "./texts/operators.js";
import { sending } from "./texts/sending.js";
import { settings } from "./texts/settings.js";

export const TEXTS = table(frame, operators, sending, audience, content, channels, settings);
export const LANGUAGES = [["pt", "Português", "pt-BR"], ["en", "English", "en"]];

const KEPT = "recado.language";

export const language = new Store(first());

/** The text of `key` in the language of the page. */
export function t(key, values = {}) {
  const row = TEXTS[key];
  if (!row) throw new Error(`no text ${key}`);
  return row[index()].replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

/** What a value of the API is called: `word("reason", "quiet_hours")`; the value itself where it has no name here. */
export function word(kind, value) {
  return TEXTS[`${kind}.${value}`]?.[index()] ?? String(value ?? "");
}

/** The language as HTML and the formats of dates and numbers name it. */
export function locale() {
  return LANGUAGES[index()][2];
}

export function speak(name) {
  localStorage.setItem(KEPT, name);
  language.set(name);
}

function index() {
  return LANGUAGES.findIndex(([name]) => name === language.value);
}

function first() {
  const kept = localStorage.getItem(KEPT);
  if (LANGUAGES.some(([name]) => name === kept)) return kept;
  return navigator.language.toLowerCase().startsWith("pt") ? "pt" : "en";
}

function table(...parts) {
  const rows = parts.flatMap(Object.entries);
  const found = Object.fromEntries(rows);
  if (Object.keys(found).length !== rows.length) throw new Error("a text stands twice");
  return found;
}
