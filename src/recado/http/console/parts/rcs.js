// What an RCS message says, and the SMS in its place, as texts: neither its picture is loaded nor its links lead anywhere.
import { html } from "../lib.js";
import { Facts, Section } from "./page.js";
import { count, duration } from "../format.js";
import { t } from "../texts.js";

/** `rcs`: the record of the message (C17.1). */
export function RcsContent({ rcs: { content, fallback } }) {
  const { text, card, suggestions } = content;
  return html`
    <${Section} title=${t("rcs.shows")}>
      <div class="bubble">
        ${text && html`<p>${text}</p>`}
        ${card && html`
          ${card.mediaUrl && html`<p class="part-footer">${card.mediaUrl}</p>`}
          <p class="part-header">${card.title}</p>
          ${card.description && html`<p>${card.description}</p>`}
          <${Suggestions} items=${card.suggestions} />
        `}
        <${Suggestions} items=${suggestions} />
      </div>
      ${fallback && html`<${Facts} rows=${[
        [t("rcs.fallback"), fallback.text],
        [t("rcs.after"), duration(fallback.afterSeconds)],
        [t("message.segments"), count(fallback.segments)],
      ]} />`}
    <//>
  `;
}

/** Each with what it does: opens, dials, or answers. */
function Suggestions({ items }) {
  return items?.length > 0 && html`<ul>${items.map(({ text, value }) => html`<li>${text} → ${value}</li>`)}</ul>`;
}
