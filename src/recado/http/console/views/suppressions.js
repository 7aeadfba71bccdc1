// Addresses that get no e-mail, whatever their person consented to (C10.5).
import { html, useState } from "../lib.js";
import { part, post, remove } from "../api.js";
import { usePages } from "../load.js";
import { Action, Button, Dialog } from "../parts/action.js";
import { Filters } from "../parts/filters.js";
import { Form } from "../parts/form.js";
import { Page } from "../parts/page.js";
import { PagedTable } from "../parts/table.js";
import { time } from "../format.js";
import { t, word } from "../texts.js";

export const path = "/email/suppressions";
export const title = "suppressions.title";

export function render({ query }) {
  const [filters, setFilters] = useState(query);
  const suppressions = usePages("/v2/email/suppressions", filters);
  const columns = [
    { name: t("suppressions.email"), cell: (each) => each.email },
    { name: t("suppressions.reason"), cell: (each) => word("suppressionReason", each.reason) },
    { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
    { name: t("field.action"), cell: (each) => html`<${Release} suppression=${each} done=${suppressions.reload} />` },
  ];
  return html`
    <${Page} title=${t(title)} actions=${html`<${Add} done=${suppressions.reload} />`}>
      <p class="quiet">${t("suppressions.about")}</p>
      <${Filters} values=${filters} apply=${setFilters} fields=${[
        { name: "email", label: t("suppressions.email"), type: "search", hint: t("suppressions.exact") },
      ]} />
      <${PagedTable} from=${suppressions} label=${t(title)} columns=${columns} empty=${t("suppressions.empty")} />
    <//>
  `;
}

function Release({ suppression: { id, email }, done }) {
  return html`
    <${Action} scope="email:write" label=${t("suppressions.release")} describe=${t("suppressions.release.of", { email })} done=${done}
      run=${() => remove(`/v2/email/suppressions/${part(id)}`)}
      confirm=${{ title: t("suppressions.release.of", { email }), text: t("suppressions.release.text") }} />
  `;
}

function Add({ done }) {
  const [open, setOpen] = useState(false);
  const close = () => setOpen(false);
  return html`
    <${Button} scope="email:write" onClick=${() => setOpen(true)}>${t("suppressions.add")}<//>
    ${open && html`
      <${Dialog} title=${t("suppressions.add")} close=${close}>
        <${Form} label=${t("suppressions.add")} submit=${t("suppressions.add")} run=${({ address }) => post("/v2/email/suppressions", { email: address })}
          done=${() => { close(); done(); }} fields=${[
            { name: "address", pointer: "/email", label: t("suppressions.email"), type: "email", required: true, maxlength: 254 },
          ]} />
        <button type="button" onClick=${close}>${t("action.cancel")}</button>
      <//>
    `}
  `;
}
