// The outer form of a view: its heading, what can be done, and its content.
import { html, useEffect, useRef } from "../lib.js";
import { t } from "../texts.js";

/** `title`: text; `back`: {href, text} of the list that this is one of; `actions`: buttons and links. */
export function Page({ title, back, actions, children }) {
  const heading = useRef(null);
  useEffect(() => {
    document.title = `${title} – Recado`;
  }, [title]);
  useEffect(() => heading.current.focus({ preventScroll: true }), []); // whoever listens hears where one is
  return html`
    <header class="page">
      <div>
        ${back && html`<a class="back" href=${back.href}>${t("page.back", { where: back.text })}</a>`}
        <h1 tabindex="-1" ref=${heading}>${title}</h1>
      </div>
      ${actions && html`<div class="actions">${actions}</div>`}
    </header>
    ${children}
  `;
}

/** A part of a page, with a heading of its own. */
export function Section({ title, actions, children }) {
  return html`
    <section>
      <header class="section"><h2>${title}</h2>${actions && html`<div class="actions">${actions}</div>`}</header>
      ${children}
    </section>
  `;
}

/** Names and values of one record: `rows` [[name, value]]; those without a value are left out. */
export function Facts({ rows }) {
  const given = rows.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return html`<dl class="facts">${given.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** A state in a word. `tone`: "good", "warn", "bad" or none; never said by the colour alone. */
export function Badge({ tone = "", children }) {
  return html`<span class=${`badge ${tone}`}>${children}</span>`;
}

/** A value as it is stored, such as a payload. */
export function Json({ value, label }) {
  return html`<pre tabindex="0" role="region" aria-label=${label}>${JSON.stringify(value, null, 2)}</pre>`;
}
