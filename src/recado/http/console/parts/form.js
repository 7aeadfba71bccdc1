// A form from a table of fields. What the API refuses stands at the field that it names.
import { html, useRef, useState } from "../lib.js";
import { Button } from "./action.js";
import { Failure } from "./states.js";
import { instant, wallTime } from "../format.js";
import { holds, timeZone } from "../session.js";
import { t, word } from "../texts.js";

let forms = 0; // made so far: their fields have ids of their own

/**
 * `fields`: [{name, label, type?, required?, hint?, options?, pointer?, autocomplete?, …}] with `type` "text", "email",
 * "password", "number", "search", "datetime-local", "checkbox", "select", "textarea" or "lines" (a text whose lines are
 * a list), a moment in the organization's zone being "datetime-local"; `options` of a select [[value, text]]; `pointer`: what the API calls it in its errors, `/name` unless said.
 * `values`: what stands there at first. `run(values)`: sends them, a promise; empty texts are left out of `values`
 * unless the field has `keepEmpty`. `done(result)`: afterwards. `inline`: fields beside one another.
 * `label`: what the form is for. `scope`: what the session needs to send it.
 */
export function Form({ fields, values = {}, submit, run, done, inline = false, label, scope }) {
  const form = useRef(null);
  const [prefix] = useState(() => `form${(forms += 1)}`);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const faults = faultsByField(fields, error);
  const send = async (event) => {
    event.preventDefault();
    if (!holds(scope)) return;
    setBusy(true);
    setError(null);
    try {
      const result = await run(read(fields, form.current));
      done?.(result);
    } catch (failed) {
      setError(failed);
      const first = fields.find(({ name }) => faultsByField(fields, failed).has(name));
      if (first) form.current.elements[first.name].focus();
    } finally {
      setBusy(false);
    }
  };
  return html`
    <form ref=${form} class=${inline ? "inline" : undefined} aria-label=${label} onSubmit=${send}>
      ${fields.map((field) => html`<${Field} key=${field.name} prefix=${prefix} field=${field} value=${values[field.name]}
        fault=${faults.get(field.name)} />`)}
      <div class="actions"><${Button} scope=${scope} type="submit" class="main" disabled=${busy}>
        ${busy ? t("action.busy") : submit}<//></div>
      ${error && !faults.size && html`<${Failure} error=${error} />`}
    </form>
  `;
}

/** The options of a select that may also stay open. */
export function choices(kind, values) {
  return [["", t("filter.any")], ...values.map((each) => [each, word(kind, each)])];
}

function Field({ prefix, field, value, fault }) {
  const { name, label, type = "text", hint: _, options, pointer, keepEmpty, ...more } = field;
  const moments = type === "datetime-local";
  const hint = moments ? timeZone() : field.hint;
  const id = `${prefix}-${name}`;
  const about = [hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(" ") || undefined;
  const common = { ...more, id, name, "aria-describedby": about, "aria-invalid": fault ? "true" : undefined };
  return html`
    <div class=${`field field-${type}`}>
      <label for=${id}>${label}</label>
      ${type === "select" && html`
        <select ...${common}>${options.map(([each, text]) => html`
          <option value=${each} selected=${each === (value ?? "")}>${text}</option>`)}</select>`}
      ${(type === "textarea" || type === "lines") && html`
        <textarea rows="4" ...${common} defaultValue=${type === "lines" ? (value ?? []).join("\n") : value ?? ""} />`}
      ${type === "checkbox" && html`<input type="checkbox" ...${common} defaultChecked=${value ?? false} />`}
      ${!["select", "textarea", "lines", "checkbox"].includes(type) && html`
        <input type=${type} ...${common} defaultValue=${moments ? wallTime(value) : value ?? ""} />`}
      ${hint && html`<p class="quiet" id=${`${id}-hint`}>${hint}</p>`}
      ${fault && html`<p class="fault" id=${`${id}-fault`}>${fault}</p>`}
    </div>
  `;
}

function read(fields, form) {
  const found = {};
  for (const { name, type, keepEmpty } of fields) {
    const input = form.elements[name];
    const text = input.value;
    if (type === "checkbox") found[name] = input.checked;
    else if (type === "lines") found[name] = text.split("\n").map((line) => line.trim()).filter(Boolean);
    else if (text === "" && !keepEmpty) continue;
    else if (type === "number") found[name] = Number(text);
    else if (type === "datetime-local") found[name] = instant(text);
    else found[name] = text;
  }
  return found;
}

function faultsByField(fields, error) {
  const found = new Map();
  for (const { path, message } of error?.errors ?? []) {
    const field = fields.find(({ name, pointer = `/${name}` }) => path === pointer || path.startsWith(`${pointer}/`));
    if (field && !found.has(field.name)) found.set(field.name, message);
  }
  return found;
}
