// The media of a message: what it is, whether we have a copy, and its download (C8.3).
import { html } from "../lib.js";
import { file, part } from "../api.js";
import { Action } from "./action.js";
import { Badge, Facts } from "./page.js";
import { bytes, time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export function MessageMedia({ message }) {
  const { kind, type, size, name, upload } = told(message);
  return html`
    <${Facts} rows=${[
      [t("media.state"), html`<${MediaState} message=${message} />`],
      [t("media.kind"), word("mediaKind", kind)],
      [t("media.type"), type],
      [t("media.size"), size === undefined ? null : bytes(size)],
      [t("media.name"), name],
      [t("media.storedAt"), message.mediaStorage && time(message.mediaStorage.storedAt)],
      [t("media.upload"), upload && html`<a href=${href(`/media/${upload}`)}>${upload}</a>`],
    ]} />
    ${message.direction === "inbound" && html`<div class="actions"><${Download} message=${message} /></div>`}
  `;
}

/** What a message says of its media: of what came the copy knows best. A stranger may have written anything there. */
export function told({ payload, mediaStorage: copy }) {
  const media = payload?.media ?? {};
  return {
    kind: text(payload?.kind), type: copy?.mimeType ?? text(media.mimeType ?? media.mime_type), size: copy?.size, name: text(media.filename),
    upload: text(media.id),
  };
}

export function MediaState({ message }) {
  if (message.direction === "outbound") return html`<${Badge}>${t("media.uploaded")}<//>`;
  return message.mediaStorage
    ? html`<${Badge} tone="good">${t("media.copied")}<//>`
    : html`<${Badge} tone="warn">${t("media.notCopied")}<//>`;
}

/** The file is handed to the browser to be kept, and never opened in the page. */
export function Download({ message: { id } }) {
  const run = async () => {
    const { content, name } = await file(`/messages/${part(id)}/media`, { download: 1 });
    const address = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
    const link = document.createElement("a");
    link.href = address;
    link.download = name ?? id;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000); // the browser has begun by then
  };
  return html`<${Action} scope="messages:read" label=${t("media.download")} describe=${t("media.download.of", { id })} run=${run} />`;
}

function text(value) {
  return typeof value === "string" ? value : undefined;
}
