// One upload: what it is, and until when it can be sent (C8.2).
import { html } from "../lib.js";
import { part } from "../api.js";
import { useGet } from "../load.js";
import { Facts, Page } from "../parts/page.js";
import { Loaded } from "../parts/states.js";
import { bytes, time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/media/:id";
export const title = "media.upload";

export function render({ params }) {
  const upload = useGet(`/media/${part(params.id)}`);
  return html`
    <${Page} title=${upload.data?.filename ?? params.id} back=${{ href: href("/media"), text: t("media.title") }}>
      ${upload.error?.status === 404 && html`<p class="notice warn" role="status">${t("media.gone")}</p>`}
      <${Loaded} from=${upload}>${(found) => html`
        <${Facts} rows=${[
          [t("field.id"), html`<code>${found.mediaId}</code>`],
          [t("media.kind"), word("mediaKind", found.kind)],
          [t("media.voice"), found.voice && t("yesNo.true")],
          [t("media.type"), found.mimeType],
          [t("media.size"), bytes(found.size)],
          [t("media.name"), found.filename],
          [t("field.number"), html`<a href=${href(`/numbers/${found.numberId}`)}>${found.numberId}</a>`],
          [t("field.createdAt"), time(found.createdAt)],
          [t("media.expiresAt"), time(found.expiresAt)],
          ["SHA-256", html`<code>${found.sha256}</code>`],
        ]} />
        <p>${t("media.use")}</p>
      `}<//>
    <//>
  `;
}
