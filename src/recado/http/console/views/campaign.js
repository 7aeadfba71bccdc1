// One campaign: its numbers, and its failed messages once more (C15.6).
import { html } from "../lib.js";
import { part } from "../api.js";
import { useGet } from "../load.js";
import { Facts, Page, Section } from "../parts/page.js";
import { Totals } from "../parts/progress.js";
import { Resend } from "../parts/resend.js";
import { Loaded } from "../parts/states.js";
import { State } from "../parts/tones.js";
import { coins, count, time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/campaigns/one"; // its tag is free text, and so stands in the query
export const title = "campaigns.campaign";

const BATCHED = ["chatapp", "sms", "rcs"]; // the channels on which many are sent again (C15.4)
const LOOK_EVERY = 10; // seconds

export function render({ query }) {
  const tag = query.tag ?? "";
  const campaign = useGet(`/v2/campaigns/${part(tag)}`, {}, { every: LOOK_EVERY });
  return html`
    <${Page} title=${tag} back=${{ href: href("/campaigns"), text: t("campaigns.title") }}>
      <${Loaded} from=${campaign}>${(found) => html`<${Campaign} campaign=${found} />`}<//>
    <//>
  `;
}

function Campaign({ campaign }) {
  const tag = campaign.campaignId;
  const channels = campaign.channels.filter((each) => BATCHED.includes(each));
  return html`
    <p><${State} kind="campaignStatus" value=${campaign.status} /></p>
    <${Section} title=${t("totals.title")}><${Totals} totals=${campaign.totals} /><//>
    <${Section} title=${t("section.facts")}>
      <${Facts} rows=${[
        [t("field.channels"), campaign.channels.map((each) => word("channel", each)).join(", ")],
        [t("campaigns.clicks"), count(campaign.clicks)],
        [t("campaigns.opens"), count(campaign.opens)],
        [t("campaigns.conversions"), count(campaign.conversions.count)],
        [t("campaigns.value"), count(campaign.conversions.value)],
        [t("field.chargedCoins"), coins(campaign.chargedCoins)],
        [t("campaigns.first"), time(campaign.firstMessageAt)],
        [t("campaigns.last"), time(campaign.lastMessageAt)],
        [t("campaigns.completedAt"), campaign.completedAt && time(campaign.completedAt)],
        [t("campaigns.completions"), count(campaign.completions)],
      ]} />
      <ul class="links">
        <li><a href=${href("/batches", { campaignId: tag })}>${t("campaigns.batches")}</a></li>
        <li><a href=${href("/messages", { campaignId: tag })}>${t("campaigns.messages")}</a></li>
        ${campaign.channels.includes("rcs") && html`
          <li><a href=${href("/messages", { campaignId: tag, channel: "rcs" })}>${t("campaigns.rcs")}</a></li>`}
      </ul>
    <//>
    ${campaign.totals.failed > 0 && channels.length > 0 && html`
      <${Resend} channels=${channels} filter=${{ campaignId: tag }} />
    `}
  `;
}
