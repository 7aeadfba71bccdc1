// What a list is narrowed to. It does not stand in the address, which the browser keeps: it may be a phone or a name.
import { html } from "../lib.js";
import { Form } from "./form.js";
import { t } from "../texts.js";

/** `fields` as of `Form`; `values`: what the list is narrowed to now; `apply(values)`: narrow it to others. */
export function Filters({ fields, values, apply }) {
  return html`
    <${Form} inline label=${t("filters.label")} submit=${t("filters.apply")} fields=${fields} values=${values}
      run=${async (given) => apply(given)} />
  `;
}
