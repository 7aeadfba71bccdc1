// What is shown once: a token or an invitation, until it is closed.
import { html, useState } from "../lib.js";
import { Dialog } from "./action.js";
import { t } from "../texts.js";

/** `value`: the secret, absent where a repeated answer has none (C6.2): then `gone` says what to do. */
export function Secret({ title, text, label, value, gone, close }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(value);
    setCopied(true);
  };
  return html`
    <${Dialog} title=${title} close=${close}>
      ${value === undefined
        ? html`<p>${gone}</p>`
        : html`
          <p>${text}</p>
          <div class="field">
            <label for="secret">${label}</label>
            <input id="secret" class="secret" readonly value=${value} onFocus=${(event) => event.target.select()} />
          </div>
          ${navigator.clipboard && html`<button type="button" class="main" onClick=${copy}>${t("secret.copy")}</button> `}
          ${copied && html`<span role="status">${t("secret.copied")}</span> `}
        `}
      <button type="button" onClick=${close}>${t("action.close")}</button>
    <//>
  `;
}
