// A button that changes something: it asks before, shows that it works, and tells what was refused. One that the session
// may not use says so and does nothing.
import { html, useEffect, useRef, useState } from "../lib.js";
import { Failure } from "./states.js";
import { holds } from "../session.js";
import { t } from "../texts.js";

/**
 * `label`: text of the button; `run()`: does it, a promise; `done(result)`: afterwards. `confirm`: {title, text}, where
 * a person should think first; `danger`: it takes something away. `describe`: for those who listen, when several
 * buttons have the same label; `scope`: what the session needs for it.
 */
export function Action({ label, run, done, confirm, danger = false, describe, scope }) {
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const act = async () => {
    setBusy(true);
    setError(null);
    try {
      const result = await run();
      setAsking(false);
      done?.(result);
    } catch (failed) {
      setError(failed);
      setAsking(true);
    } finally {
      setBusy(false);
    }
  };
  const close = () => {
    setAsking(false);
    setError(null);
  };
  return html`
    <${Button} scope=${scope} class=${danger ? "danger" : undefined} disabled=${busy} aria-label=${describe}
      onClick=${() => (confirm ? setAsking(true) : act())}>${busy ? t("action.busy") : label}<//>
    ${asking && html`
      <${Dialog} title=${confirm?.title ?? label} close=${close}>
        ${confirm && html`<p>${confirm.text}</p>`}
        ${error && html`<${Failure} error=${error} />`}
        <div class="actions">
          <button type="button" class=${danger ? "danger" : "main"} disabled=${busy} onClick=${act}>
            ${busy ? t("action.busy") : error ? t("state.retry") : label}
          </button>
          <button type="button" onClick=${close}>${t("action.cancel")}</button>
        </div>
      <//>
    `}
  `;
}

/** A button that `scope` is needed for: without it, it stands there, looks it, and tells whoever presses it why. */
export function Button({ scope, children, ...more }) {
  const [told, setTold] = useState(false);
  if (holds(scope)) return html`<button type="button" ...${more}>${children}</button>`;
  return html`
    <button ...${more} type="button" class="denied" aria-disabled="true" title=${t("advice.SCOPE_REQUIRED", { scope })}
      onClick=${() => setTold(true)}>${children}</button>
    ${told && html`
      <${Dialog} title=${t("action.denied")} close=${() => setTold(false)}>
        <p>${t("advice.SCOPE_REQUIRED", { scope })}</p>
        <button type="button" onClick=${() => setTold(false)}>${t("action.close")}</button>
      <//>
    `}
  `;
}

/** What stands before the page until it is closed. Escape closes it, and the focus goes back to where it was. */
export function Dialog({ title, close, children }) {
  const dialog = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before?.focus();
  }, []);
  return html`
    <dialog ref=${dialog} aria-label=${title} onCancel=${(event) => { event.preventDefault(); close(); }}>
      <h2>${title}</h2>
      ${children}
    </dialog>
  `;
}
