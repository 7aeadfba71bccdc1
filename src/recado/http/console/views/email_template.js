// One template of e-mails, as it looks with values (C10.4).
import { html, useState } from "../lib.js";
import { part, post, remove } from "../api.js";
import { useGet, useLoad } from "../load.js";
import { Action } from "../parts/action.js";
import { Form } from "../parts/form.js";
import { Mail } from "../parts/mail.js";
import { Facts, Page, Section } from "../parts/page.js";
import { Loaded } from "../parts/states.js";
import { State } from "../parts/tones.js";
import { time } from "../format.js";
import { href } from "../router.js";
import { t } from "../texts.js";

export const path = "/email/templates/:id";
export const title = "emailTemplates.template";

export function render({ params }) {
  const address = `/v2/email/templates/${part(params.id)}`;
  const template = useGet(address);
  const found = template.data;
  const archive = html`
    <${Action} scope="email:write" label=${t("emailTemplates.archive")} danger run=${() => remove(address)} done=${template.reload}
      confirm=${{ title: t("emailTemplates.archive.title"), text: t("emailTemplates.archive.text") }} />`;
  return html`
    <${Page} title=${found?.name ?? params.id} actions=${found?.status === "active" && archive}
      back=${{ href: href("/email/templates"), text: t("emailTemplates.title") }}>
      <${Loaded} from=${template}>${(each) => html`
        <p><${State} kind="emailTemplateStatus" value=${each.status} /></p>
        <${Preview} address=${address} template=${each} />
        <${Facts} rows=${[
          [t("field.id"), html`<code>${each.id}</code>`],
          [t("emailTemplates.subject"), each.subject],
          [t("field.version"), each.version],
          [t("field.createdBy"), html`<code>${each.createdById}</code>`],
          [t("field.createdAt"), time(each.createdAt)],
          [t("field.updatedAt"), time(each.updatedAt)],
        ]} />
        ${each.mjml && html`<${Source} title=${t("emailTemplates.mjml")} text=${each.mjml} />`}
        <${Source} title=${t("emailTemplates.html")} text=${each.html} />
      `}<//>
    <//>
  `;
}

/** What the recipient sees; without values, the examples of the template stand in their places. */
function Preview({ address, template }) {
  const [variables, setVariables] = useState({});
  const examples = new Set(template.variables.filter(({ example }) => example).map(({ name }) => name));
  const preview = useLoad((signal) => post(`${address}/preview`, { variables }, { signal }), [JSON.stringify(variables)]);
  return html`
    ${template.variables.length > 0 && html`
      <${Section} title=${t("emailTemplates.values")}>
        <${Form} inline label=${t("emailTemplates.values")} submit=${t("emailTemplates.show")} run=${async (given) => setVariables(named(template, given))}
          fields=${template.variables.map(({ name, example }, index) => ({ name: `variable${index}`, label: name, hint: example ?? undefined }))} />
      <//>
    `}
    <${Section} title=${t("emailTemplates.preview")}>
      <${Loaded} from=${preview}>${(made) => html`
        <${Facts} rows=${[
          [t("emailTemplates.subject"), made.subject],
          [t("emailTemplates.exemplary"), made.missing.filter((name) => examples.has(name)).join(", ")],
          [t("emailTemplates.missing"), made.missing.filter((name) => !examples.has(name)).join(", ")],
        ]} />
        <p class="quiet">${t("emailTemplates.about")}</p>
        <${Mail} content=${made.html} title=${t("emailTemplates.preview")} />
        ${made.text && html`<${Source} title=${t("emailTemplates.text")} text=${made.text} />`}
      `}<//>
    <//>
  `;
}

/** Names of variables are free: as names of fields they could hide what a form has of its own. */
function named({ variables }, given) {
  const pairs = variables.map(({ name }, index) => [name, given[`variable${index}`]]);
  return Object.fromEntries(pairs.filter(([, value]) => value !== undefined));
}

function Source({ title: called, text }) {
  return html`<details><summary>${called}</summary><pre tabindex="0" role="region" aria-label=${called}>${text}</pre></details>`;
}
