// Push apps: what devices register with. Credentials are shown to nobody, and given by the API alone (C22.4).
import { html, useState } from "../lib.js";
import { ApiError, newKey, part, patch, post, remove } from "../api.js";
import { usePages } from "../load.js";
import { Action, Button, Dialog } from "../parts/action.js";
import { Form } from "../parts/form.js";
import { Badge, Page } from "../parts/page.js";
import { PagedTable } from "../parts/table.js";
import { time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";
import { PLATFORMS } from "./push_devices.js";

export const path = "/push/apps";
export const title = "apps.title";

export function render() {
  const apps = usePages("/v2/push/apps");
  const columns = [
    { name: t("apps.app"), cell: (each) => each.name },
    { name: t("field.id"), cell: (each) => html`<code>${each.id}</code>` },
    { name: t("push.platforms"), cell: (each) => each.platforms.map((one) => word("platform", one)).join(", ") },
    { name: t("apps.credentials"), cell: (each) => html`
      <${Badge} tone=${each.hasCredentials ? "good" : ""}>${t(each.hasCredentials ? "yesNo.true" : "yesNo.false")}<//>` },
    { name: t("apps.vapid"), cell: (each) => html`<code>${each.vapidPublicKey}</code>` },
    { name: t("devices.title"), cell: (each) => html`<a href=${href("/push/devices", { appId: each.id })}>${t("apps.devices")}</a>` },
    { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
    { name: t("field.action"), cell: (each) => html`<${Actions} app=${each} done=${apps.reload} />` },
  ];
  return html`
    <${Page} title=${t(title)} actions=${html`<${Edit} label=${t("apps.create")} main send=${(values, key) => post("/v2/push/apps", values, { key })}
      done=${apps.reload} />`}>
      <p class="quiet">${t("apps.about")}</p>
      <${PagedTable} from=${apps} label=${t(title)} columns=${columns} empty=${t("apps.empty")} />
    <//>
  `;
}

function Actions({ app, done }) {
  const address = `/v2/push/apps/${part(app.id)}`;
  const { name } = app;
  return html`
    <div class="actions">
      <${Edit} app=${app} label=${t("apps.change")} describe=${t("apps.change.of", { name })} send=${(values) => patch(address, values)} done=${done} />
      <${Action} scope="push:send" label=${t("action.delete")} describe=${t("apps.delete.of", { name })} danger run=${() => remove(address)} done=${done}
        confirm=${{ title: t("apps.delete.of", { name }), text: t("apps.delete.text") }} />
    </div>
  `;
}

/** The name and the platforms, of `app` or of a new one. `send(values, key)`: a promise. */
function Edit({ app, label, describe, main, send, done }) {
  const [key, setKey] = useState(null); // of the request that the open form makes
  const close = () => setKey(null);
  const run = ({ name, ...chosen }) => {
    const platforms = PLATFORMS.filter((each) => chosen[each]);
    if (!platforms.length) throw new ApiError(422, { errors: [{ path: `/${PLATFORMS[0]}`, message: t("apps.platform") }] });
    return send({ name, platforms }, key);
  };
  return html`
    <${Button} scope="push:send" class=${main && "main"} aria-label=${describe} onClick=${() => setKey(newKey())}>${label}<//>
    ${key && html`
      <${Dialog} title=${describe ?? label} close=${close}>
        <${Form} label=${describe ?? label} submit=${app ? t("action.save") : label} run=${async (values) => run(values)} done=${() => { close(); done(); }}
          values=${{ name: app?.name, ...Object.fromEntries((app?.platforms ?? PLATFORMS).map((each) => [each, true])) }} fields=${[
            { name: "name", label: t("field.name"), required: true, maxlength: 100 },
            ...PLATFORMS.map((each) => ({ name: each, label: word("platform", each), type: "checkbox" })),
          ]} />
        <button type="button" onClick=${close}>${t("action.cancel")}</button>
      <//>
    `}
  `;
}
