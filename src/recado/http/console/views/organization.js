// The settings of the organization, which hold for both environments (C24.1).
import { html, useState } from "../lib.js";
import { patch } from "../api.js";
import { change } from "../session.js";
import { useGet } from "../load.js";
import { Form } from "../parts/form.js";
import { Facts, Page, Section } from "../parts/page.js";
import { Loaded } from "../parts/states.js";
import { State } from "../parts/tones.js";
import { time } from "../format.js";
import { t } from "../texts.js";

export const path = "/organization";
export const title = "organization.title";

const ADDRESS = "/v2/organization";

export function render() {
  const organization = useGet(ADDRESS);
  const [saved, setSaved] = useState(false);
  const done = ({ name, timeZone }) => {
    change({ organization: { name, timeZone } });
    setSaved(true);
    organization.reload();
  };
  return html`
    <${Page} title=${t(title)}>
      <${Loaded} from=${organization}>${(found) => html`
        <p><${State} kind="organizationStatus" value=${found.status} /></p>
        <${Facts} rows=${[
          [t("field.id"), html`<code>${found.id}</code>`],
          [t("organization.country"), found.country],
          [t("organization.dedicatedSender"), found.dedicatedSender],
          [t("field.createdAt"), time(found.createdAt)],
          [t("field.updatedAt"), time(found.updatedAt)],
        ]} />
        <${Section} title=${t("organization.settings")}>
          ${saved && html`<p class="notice good" role="status">${t("organization.saved")}</p>`}
          <${Settings} organization=${found} done=${done} />
        <//>
      `}<//>
    <//>
  `;
}

function Settings({ organization, done }) {
  const { quietHours: quiet } = organization;
  const save = ({ quietStart, quietEnd, optOutReply = null, ...settings }) => {
    const quietHours = quietStart || quietEnd ? { start: quietStart ?? "", end: quietEnd ?? "" } : null;
    const given = Object.entries({ ...settings, quietHours, optOutReply });
    // What was not changed here may have been changed by others meanwhile.
    return patch(ADDRESS, Object.fromEntries(given.filter(([name, value]) => !same(value, organization[name]))));
  };
  return html`
    <${Form} scope="org:write" label=${t("organization.settings")} submit=${t("action.save")} run=${save} done=${done}
      values=${{ ...organization, quietStart: quiet?.start, quietEnd: quiet?.end }} fields=${[
        { name: "name", label: t("field.name"), required: true },
        { name: "timeZone", label: t("field.timeZone"), required: true, hint: t("organization.timeZone.hint") },
        { name: "quietStart", pointer: "/quietHours/start", label: t("organization.quietStart"), type: "time", hint: t("organization.quiet.hint") },
        { name: "quietEnd", pointer: "/quietHours/end", label: t("organization.quietEnd"), type: "time" },
        { name: "requireGrantedForMarketing", label: t("organization.requireGranted"), type: "checkbox" },
        { name: "hidePhoneHash", label: t("organization.hidePhoneHash"), type: "checkbox" },
        { name: "optOutKeywords", label: t("organization.optOutKeywords"), type: "lines", hint: t("organization.keywords.hint") },
        { name: "optInKeywords", label: t("organization.optInKeywords"), type: "lines", hint: t("organization.keywords.hint") },
        { name: "optOutReply", label: t("organization.optOutReply"), type: "textarea", hint: t("organization.optOutReply.hint") },
      ]} />
  `;
}

function same(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}
