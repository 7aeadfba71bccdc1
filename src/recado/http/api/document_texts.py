"""The document's own words: what the API is, and its groups in the order in which a newcomer needs them."""

DESCRIPTION = """\
Sends messages and tracks what becomes of each.

Every call takes `Authorization: Bearer <API key>`. `recado keys create --env test` makes a key for the sandbox,
which reaches nobody; enter it under Authorize to try calls from this page. What a problem's code means is told at
`/problems`."""

GROUPS = {
    "Messages": "Send a message, read where it is, list and force messages.",
    "SMS": "Send an SMS, see what a text would take and cost, list and read.",
    "E-mail": "Send an e-mail and hear what its provider says; templates, senders, addresses that get none.",
    "Numbers": "The numbers that messages leave from: connection, pace, health.",
    "Templates": "Texts that the provider reviews before they may be sent.",
    "Sandbox": "In test only: make a review, an incoming message or a number's trouble happen.",
    "Batches": "Many messages at once: their totals, pause, resume, cancel.",
    "Campaigns": "What became of all messages of one `campaignId`, and sending failed ones again.",
    "Exports": "All messages of a channel and a period, page by page.",
    "Contacts": "People, their consent, and imports of many.",
    "Lists": "Contacts put together by hand.",
    "Segments": "Contacts found by a filter.",
    "Customer events": "What customers did: posted once, and credited to the last message that they got.",
    "Journeys": "Graphs of steps that take contacts along: drafts, what is missing in them, and what runs.",
    "Companies": "The companies that contacts belong to.",
    "Links": "Links that bring people to a chat, and those that they open.",
    "Webhooks": "Subscriptions to events, and what was delivered.",
    "Wallet": "Balance, ledger, top-ups and prices.",
    "API keys": "Credentials of programs.",
    "Accounts": "People who sign in, and their roles.",
    "Sessions": "Signing in and out.",
    "Organization": "The organization itself and its settings.",
    "Operators": "The live state of numbers, actors, webhooks and providers; pause a number, restart an actor.",
    "Audit": "Who changed what.",
    "Administration": "For the installation's administrator, with `RECADO_ADMIN_TOKEN`.",
    "Callbacks": "Called by providers, not by you.",
    "Service": "The service itself.",
}
