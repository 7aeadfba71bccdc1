// The table of views. To add one:
//
// 1. A module in `views/` that exports
//      path    the address after `#`, with parameters: "/numbers/:id"; two views never match the same address
//      title   the key of its text, for the menu
//      render  a component: render({params, query}), with the parameters of the path and of the search, all texts.
//              It returns <${Page} title=…>…<//> (parts/page.js); hooks may be used (lib.js)
// 2. A line in `VIEWS`, below. Those with `menu: true` stand in the menu, in this order, under the heading of their
//    `group`, a key of a text, for sessions that hold its `scope`, where it has one. A view of one record has no `menu`: links lead there (`href` of router.js).
// 3. Its texts, in a file of `texts/`, Portuguese and English (texts.js). A view writes no text itself.
//
// What views are made of, each described in its module:
//      api.js           get, post, put, patch, remove, file, part, newKey; a refusal is an ApiError
//      load.js          useGet(path, query), usePages(path, query), useLoad(read, deps, {every})
//      format.js        time, moment, count, share, bytes, duration, milliseconds, coins
//      parts/page.js    Page, Section, Facts, Badge, Json
//      parts/states.js  Loading, Empty, Failure, Loaded
//      parts/table.js   Table, PagedTable, More
//      parts/form.js    Form, from a table of fields; choices, the options of a select
//      parts/filters.js Filters: what a list is narrowed to
//      parts/action.js  Action: a button that asks before it changes something; Button, Dialog. `scope` of an Action, a Button
//                       or a Form is what its operation needs: without it, it is shown as not allowed, and says why
//      parts/tones.js   State: the state of a record as a badge
//      parts/secret.js  Secret: what is shown once
//      parts/chart.js   Chart: series over time
//      parts/graph.js   Graph: the steps of a journey
//      parts/mail.js    Mail: an e-mail in a frame
//      parts/media.js   MessageMedia, MediaState, Download: what came with a message
//      parts/rcs.js     RcsContent: what an RCS message says
//      live.js          the operators' stream
//
// What the API gives is text: it goes into `${…}` of a template, nowhere else. An address that a caller stored is shown
// as text, never made a link. A view is made anew when the environment, the language or the address changes.
import * as accounts from "./views/accounts.js";
import * as actors from "./views/actors.js";
import * as api_keys from "./views/api_keys.js";
import * as audit from "./views/audit.js";
import * as batch from "./views/batch.js";
import * as batches from "./views/batches.js";
import * as campaign from "./views/campaign.js";
import * as campaigns from "./views/campaigns.js";
import * as contact from "./views/contact.js";
import * as contacts from "./views/contacts.js";
import * as delivery from "./views/delivery.js";
import * as email_senders from "./views/email_senders.js";
import * as email_template from "./views/email_template.js";
import * as email_templates from "./views/email_templates.js";
import * as execution from "./views/execution.js";
import * as executions from "./views/executions.js";
import * as journey from "./views/journey.js";
import * as journeys from "./views/journeys.js";
import * as media from "./views/media.js";
import * as message from "./views/message.js";
import * as messages from "./views/messages.js";
import * as number from "./views/number.js";
import * as numbers from "./views/numbers.js";
import * as organization from "./views/organization.js";
import * as providers from "./views/providers.js";
import * as push_apps from "./views/push_apps.js";
import * as push_devices from "./views/push_devices.js";
import * as push_message from "./views/push_message.js";
import * as push_messages from "./views/push_messages.js";
import * as social_account from "./views/social_account.js";
import * as social_accounts from "./views/social_accounts.js";
import * as suppressions from "./views/suppressions.js";
import * as template from "./views/template.js";
import * as templates from "./views/templates.js";
import * as upload from "./views/upload.js";
import * as wallet from "./views/wallet.js";
import * as webhook from "./views/webhook.js";
import * as webhooks from "./views/webhooks.js";

export const VIEWS = [
  { ...numbers, menu: true, group: "menu.operation" },
  number,
  { ...messages, menu: true, group: "menu.operation" },
  message,
  { ...media, menu: true, group: "menu.operation" },
  upload,
  { ...webhooks, menu: true, group: "menu.operation" },
  webhook,
  delivery,
  { ...providers, menu: true, group: "menu.operation" },
  { ...actors, menu: true, group: "menu.operation" },
  { ...wallet, menu: true, group: "menu.operation" },
  { ...batches, menu: true, group: "menu.sending" },
  batch,
  { ...campaigns, menu: true, group: "menu.sending" },
  campaign,
  { ...push_messages, menu: true, group: "menu.sending", scope: "push:read" },
  push_message,
  { ...journeys, menu: true, group: "menu.sending" },
  journey,
  executions,
  execution,
  { ...templates, menu: true, group: "menu.sending" },
  template,
  { ...email_templates, menu: true, group: "menu.sending" },
  email_template,
  { ...contacts, menu: true, group: "menu.people" },
  contact,
  { ...push_devices, menu: true, group: "menu.people", scope: "push:read" },
  { ...suppressions, menu: true, group: "menu.people" },
  { ...email_senders, menu: true, group: "menu.settings" },
  { ...social_accounts, menu: true, group: "menu.settings", scope: "social:read" },
  social_account,
  { ...push_apps, menu: true, group: "menu.settings", scope: "push:read" },
  { ...api_keys, menu: true, group: "menu.settings", scope: "apikeys:read" },
  { ...accounts, menu: true, group: "menu.settings", scope: "accounts:read" },
  { ...audit, menu: true, group: "menu.settings", scope: "audit:read" },
  { ...organization, menu: true, group: "menu.settings" },
];

/** Where one is after signing in. */
export const FIRST = "/numbers";
