// The states of records as badges: which are well, which want somebody to look, which are bad.
import { html } from "../lib.js";
import { Badge } from "./page.js";
import { word } from "../texts.js";

const TONES = {
  batchStatus: { running: "good", completed: "good", paused: "warn", failed: "bad" },
  campaignStatus: { completed: "good" },
  journeyStatus: { ativa: "good", pausada: "warn" },
  executionStatus: { concluida: "good", erro: "bad" },
  templateStatus: { approved: "good", rejected: "bad", paused: "warn", disabled: "bad" },
  emailTemplateStatus: { active: "good" },
  senderStatus: { verified: "good", pending: "warn", failed: "bad" },
  socialStatus: { connected: "good", pending: "warn", disconnected: "bad" },
  pushStatus: { completed: "good", failed: "bad", scheduled: "warn", queued: "warn", sending: "warn" },
  dispatchStatus: { delivered: "good", failed: "bad", unregistered: "bad", queued: "warn" },
  deviceStatus: { registered: "good", opted_out: "warn", invalid: "bad" },
  keyStatus: { active: "good", expired: "warn" },
  accountStatus: { active: "good", invited: "warn" },
  consent: { granted: "good", denied: "bad" },
  organizationStatus: { active: "good", suspended: "bad" },
};

/** `kind`: which state of which record; what it is called stands in the texts as `<kind>.<value>`. */
export function State({ kind, value }) {
  return html`<${Badge} tone=${TONES[kind][value]}>${word(kind, value)}<//>`;
}
