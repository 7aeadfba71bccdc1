// One chat-app template: its parts as a person would see them, its review, and its end (C11).
import { html } from "../lib.js";
import { part, post, remove } from "../api.js";
import { useGet } from "../load.js";
import { Action } from "../parts/action.js";
import { Facts, Page, Section } from "../parts/page.js";
import { Loaded } from "../parts/states.js";
import { State } from "../parts/tones.js";
import { time } from "../format.js";
import { go, href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/templates/:id";
export const title = "templates.template";

export function render({ params }) {
  const address = `/v2/templates/${part(params.id)}`;
  const template = useGet(address);
  const found = template.data;
  const actions = found && html`
    ${["draft", "rejected"].includes(found.status) && html`
      <${Action} scope="templates:write" label=${t("templates.submit")} run=${() => post(`${address}/submit`)} done=${template.reload}
        confirm=${{ title: t("templates.submit.title"), text: t("templates.submit.text") }} />`}
    <${Action} scope="templates:write" label=${t("action.delete")} danger run=${() => remove(address)} done=${() => go("/templates")}
      confirm=${{ title: t("templates.delete.title"), text: t("templates.delete.text") }} />
  `;
  return html`
    <${Page} title=${found?.name ?? params.id} actions=${actions} back=${{ href: href("/templates"), text: t("templates.title") }}>
      <${Loaded} from=${template}>${(each) => html`<${Template} template=${each} />`}<//>
    <//>
  `;
}

function Template({ template }) {
  return html`
    <p><${State} kind="templateStatus" value=${template.status} /></p>
    ${template.rejectionReason && html`
      <p class="notice bad"><strong>${t("templates.rejected")}</strong> ${template.rejectionReason}</p>`}
    <${Section} title=${t("templates.content")}>
      <div class="bubble">${template.components.map((each) => html`<${Part} component=${each} />`)}</div>
    <//>
    <${Facts} rows=${[
      [t("field.id"), html`<code>${template.id}</code>`],
      [t("templates.category"), word("templateCategory", template.category)],
      [t("templates.language"), template.language],
      [t("field.version"), template.version],
      [t("field.number"), html`<a href=${href(`/numbers/${template.numberId}`)}>${template.numberId}</a>`],
      [t("templates.providerId"), template.providerTemplateId],
      [t("templates.example"), template.headerExampleUrl],
      [t("field.createdAt"), time(template.createdAt)],
      [t("field.updatedAt"), time(template.updatedAt)],
    ]} />
  `;
}

/** A part may hold anything (C11.2): what has another form than it should is shown as it is. */
function Part({ component: { type, payload } }) {
  const kind = type.toLowerCase();
  const { text, format, buttons, example } = payload !== null && typeof payload === "object" ? payload : { text: payload };
  return html`
    <div class=${["header", "footer"].includes(kind) ? `part-${kind}` : undefined}>
      <span class="unseen">${word("templatePart", kind)}: </span>
      ${format && format !== "TEXT" && html`<p class="quiet">${plain(format)}</p>`}
      ${text !== undefined && html`<p>${plain(text)}</p>`}
      ${Array.isArray(buttons) && html`<ul>${buttons.map((each) => html`<li>${buttonText(each)}</li>`)}</ul>`}
      ${example !== undefined && html`<p class="quiet">${t("templates.examples")} ${[example].flat().map(plain).join(", ")}</p>`}
    </div>
  `;
}

function buttonText(button) {
  if (button === null || typeof button !== "object") return plain(button);
  const { text, type, url, phoneNumber, flowId } = button;
  return [text, type, url, phoneNumber, flowId].filter((each) => each !== undefined).map(plain).join(" · ");
}

function plain(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}
