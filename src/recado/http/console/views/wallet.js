// The wallet: what there is, what is held, what was charged, and what things cost (C25).
import { html, useState } from "../lib.js";
import { patch } from "../api.js";
import { useGet, usePages } from "../load.js";
import { Badge, Facts, Page, Section } from "../parts/page.js";
import { Form, choices } from "../parts/form.js";
import { Empty, Loaded } from "../parts/states.js";
import { PagedTable, Table } from "../parts/table.js";
import { coins, count, time } from "../format.js";
import { href } from "../router.js";
import { t, word } from "../texts.js";

export const path = "/wallet";
export const title = "wallet.title";

const TONES = { ok: "good", low: "warn", depleted: "bad" };
const KINDS = ["topup", "charge", "refund", "adjustment"];

const COLUMNS = () => [
  { name: t("field.createdAt"), cell: (each) => time(each.createdAt) },
  { name: t("wallet.kind"), cell: (each) => word("ledger", each.kind) },
  { name: t("wallet.coins"), number: true, cell: (each) => coins(each.coins) },
  { name: t("wallet.after"), number: true, cell: (each) => count(each.balanceAfter) },
  { name: t("field.channel"), cell: (each) => each.channel && word("channel", each.channel) },
  { name: t("field.message"), cell: (each) => each.messageId && html`<a href=${href(`/messages/${each.messageId}`)}>${each.messageId}</a>` },
  { name: t("wallet.description"), cell: (each) => each.description },
];

export function render() {
  const wallet = useGet("/v2/wallet", {}, { every: 15 });
  return html`
    <${Page} title=${t(title)}>
      ${wallet.error?.status === 404 ? html`<${Empty} text=${t("wallet.off")} />` : html`<${Wallet} wallet=${wallet} />`}
    <//>
  `;
}

function Wallet({ wallet }) {
  const [filters, setFilters] = useState({});
  const ledger = usePages("/v2/wallet/ledger", filters);
  return html`
    <${Loaded} from=${wallet}>${(one) => html`<${Balance} one=${one} reload=${wallet.reload} />`}<//>
    <${Section} title=${t("wallet.ledger")}>
      <${Form} inline label=${t("messages.search")} submit=${t("messages.search")} values=${filters}
        run=${async (values) => setFilters(values)} fields=${[
        { name: "kind", label: t("wallet.kind"), type: "select", options: choices("ledger", KINDS) },
        { name: "messageId", label: t("field.message"), type: "search", placeholder: "msg_…" },
        { name: "from", label: t("field.from"), type: "datetime-local" },
        { name: "to", label: t("field.to"), type: "datetime-local" },
      ]} />
      <${PagedTable} from=${ledger} label=${t("wallet.ledger")} columns=${COLUMNS()} empty=${t("wallet.empty")} />
    <//>
    <${Prices} />
  `;
}

function Balance({ one, reload }) {
  return html`
    <p><${Badge} tone=${TONES[one.status]}>${word("walletStatus", one.status)}<//>
      ${one.status !== "ok" && html` <span class="quiet">${t("wallet.advice")}</span>`}</p>
    <${Facts} rows=${[
      [t("wallet.available"), coins(one.availableCoins)],
      [t("wallet.balance"), coins(one.balanceCoins)],
      [t("wallet.held"), coins(one.heldCoins)],
      [t("wallet.threshold"), coins(one.lowBalanceThresholdCoins)],
    ]} />
    <${Form} inline scope="wallet:write" label=${t("wallet.threshold")} submit=${t("wallet.setThreshold")}
      values=${{ lowBalanceThresholdCoins: one.lowBalanceThresholdCoins }} run=${(values) => patch("/v2/wallet", values)}
      done=${reload} fields=${[{ name: "lowBalanceThresholdCoins", label: t("wallet.thresholdCoins"), type: "number", min: 0,
        required: true, hint: t("wallet.thresholdHint") }]} />
  `;
}

function Prices() {
  const read = useGet("/v2/wallet/prices");
  return html`
    <${Section} title=${t("wallet.prices")}>
      <${Loaded} from=${read}>
        ${({ prices, month }) => html`
          <p class="quiet">${t("wallet.pricesOf", { month })}</p>
          <${Table} label=${t("wallet.prices")} items=${prices} rowKey=${(each) => `${each.channel} ${each.kind}`} columns=${[
            { name: t("wallet.priceKind"), cell: (each) => `${word("channel", each.channel)}: ${each.kind}` },
            { name: t("wallet.unit"), cell: (each) => word("unit", each.unit) },
            { name: t("wallet.now"), number: true, cell: (each) => coins(each.unitCoins) },
            { name: t("wallet.abroad"), number: true, cell: (each) => coins(each.internationalCoins) },
          ]} />
        `}
      <//>
    <//>
  `;
}
