// Failed messages are sent again (C15.4): first what that would do, then, when it is confirmed, a batch of copies.
import { html, useState } from "../lib.js";
import { newKey, post } from "../api.js";
import { Action } from "./action.js";
import { Form } from "./form.js";
import { Facts, Section } from "./page.js";
import { coins, count } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

/** What a session needs to send on a channel. */
const SEND = { chatapp: "messages:send", sms: "sms:send", rcs: "rcs:send" };

/** `channels`: those that the messages may be of; `filter`: which failed messages. */
export function Resend({ channels, filter }) {
  const [plan, setPlan] = useState(null); // {wish, estimate, key}: what was asked, and what it would do
  const [batch, setBatch] = useState(null);
  const look = async (given) => {
    const wish = { channel: channels[0], ...given, filter };
    setPlan(null);
    setBatch(null);
    const estimate = await post("/messages/resend", { ...wish, dryRun: true });
    setPlan({ wish, estimate, key: newKey() });
  };
  const sent = (answer) => {
    setPlan(null);
    setBatch(answer.batch);
  };
  return html`
    <${Section} title=${t("resend.title")}>
      <p>${t("resend.about")}</p>
      <${Form} inline scope=${SEND[channels[0]]} label=${t("resend.title")} submit=${t("resend.look")} run=${look} fields=${[
        ...(channels.length > 1
          ? [{ name: "channel", label: t("field.channel"), type: "select", options: channels.map((each) => [each, word("channel", each)]) }]
          : []),
        { name: "includeUncertain", label: t("resend.uncertain"), type: "checkbox", hint: t("resend.uncertain.hint") },
      ]} />
      ${plan && html`
        <${Facts} rows=${[
          [t("resend.matched"), count(plan.estimate.matched)],
          [t("resend.coins"), plan.estimate.estimatedCoins === undefined ? null : coins(plan.estimate.estimatedCoins)],
          ...Object.entries(plan.estimate.skipped).map(([code, number]) => [t("resend.skipped", { code }), count(number)]),
        ]} />
        ${plan.estimate.matched > 0 && html`
          <${Action} scope=${SEND[plan.wish.channel]} label=${t("resend.do")} run=${() => post("/messages/resend", plan.wish, { key: plan.key })} done=${sent}
            confirm=${{ title: t("resend.do"), text: t("resend.confirm", { number: count(plan.estimate.matched) }) }} />
        `}
      `}
      ${batch && html`<p role="status">${t("resend.done")} <a href=${href(`/batches/${batch.id}`)}>${batch.id}</a></p>`}
    <//>
  `;
}
