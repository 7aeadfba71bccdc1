"""The document's own words: what the API is, and its groups in the order in which a newcomer needs them."""

DESCRIPTION = """\
Sends messages and tracks what becomes of each.

Every call takes `Authorization: Bearer <API key>`. `recado keys create --env test` makes a key for the sandbox,
which reaches nobody; the samples of code read it from the variable `KEY`, and `/docs/try` sends calls with it.
What a problem's code means is told at `/problems`."""

GROUPS = {
    "Messages": (
        "Send a message, read where it is, list and force messages.\n\n"
        "A message is stored before it is answered, and leaves at the pace of its number. Repeat a send with the "
        "same `Idempotency-Key`, and it is sent once."
    ),
    "SMS": (
        "Send an SMS, see what a text would take and cost, list and read.\n\n"
        "A text is charged by its segments: ask `/v2/sms/preview` before, and read in its answer which characters "
        "make it dear."
    ),
    "RCS": (
        "Send an RCS message: a text, a card, what can be tapped; list and read.\n\n"
        "Give a `fallback`, and an SMS takes its place where the phone has no RCS, or nothing is delivered in time."
    ),
    "E-mail": (
        "Send an e-mail and hear what its provider says; templates, senders, addresses that get none.\n\n"
        "Begin with a sender and the DNS records that it asks for."
    ),
    "Media": (
        "Upload files to send, and download what people sent.\n\n"
        "An upload is given to a number's provider and kept for 30 days: any number of the organization can send it. "
        "What comes with a message is copied in the background, and can be read from the provider before."
    ),
    "Social": (
        "The accounts at social platforms through which people are answered.\n\n"
        "An account is registered, then connected; whoever writes to it can be answered for 24 hours, with "
        "`POST /messages` on channel `social`."
    ),
    "Push": (
        "Notifications to the devices of an app: apps, devices, sends to many of them.\n\n"
        "An app registers each device at its start, with a key that may do nothing else; a send fixes its audience "
        "when it is accepted, and is charged for each device whose provider took it."
    ),
    "Numbers": (
        "The numbers that messages leave from: connection, pace, health.\n\n"
        "A number is registered, then connected; from then on it sends at its pace, and its health tells what its "
        "provider says of it."
    ),
    "Templates": (
        "Texts that the provider reviews before they may be sent.\n\n"
        "A draft is submitted; once it is approved, messages name it by its id and give its variables."
    ),
    "Flows": (
        "Forms in screens that open inside of a chat.\n\n"
        "A draft is published at the provider; from then on interactive messages of type `flow` name it by its id."
    ),
    "Sandbox": (
        "In test only: make a review, an incoming message or a number's trouble happen.\n\n"
        "Nothing of it reaches anybody, and a credential of live is refused."
    ),
    "Batches": (
        "Many messages at once: their totals, pause, resume, cancel.\n\n"
        "Recipients who cannot be sent to are skipped with a reason; the others leave one by one, each a message "
        "of its own."
    ),
    "Campaigns": (
        "What became of all messages of one `campaignId`, and sending failed ones again.\n\n"
        "A campaign is not created: it is there once a message names it."
    ),
    "Exports": (
        "All messages of a channel and a period, page by page.\n\n"
        "For copies into other systems: pass `nextCursor` back until it is null. Each page costs the same, and "
        "nothing comes twice."
    ),
    "Contacts": (
        "People, their consent, and imports of many.\n\n"
        "Your system names a contact by its `externalId`. An opt-out holds for people who are no contact yet, too."
    ),
    "Lists": (
        "Contacts put together by hand.\n\n"
        "Members are added and removed by id, `externalId` or phone; contacts are never made here."
    ),
    "Segments": (
        "Contacts found by a filter.\n\n"
        "A segment holds whoever fits when it is used: preview a filter before it is stored."
    ),
    "Customer events": (
        "What customers did: posted once, and credited to the last message that they got.\n\n"
        "With them a campaign tells its conversions."
    ),
    "Journeys": (
        "Graphs of steps that take contacts along: drafts, what is missing in them, and what runs.\n\n"
        "Draft, simulate, activate: an active journey does not change, a new version takes its place."
    ),
    "Companies": ("The companies that contacts belong to.\n\nSearch them by a part of the name, or by a CNPJ."),
    "Links": (
        "Links that bring people to a chat, and those that they open.\n\n"
        "An origin link opens a chat with a number; the message that brings its code shows where the link was "
        "found."
    ),
    "Webhooks": (
        "Subscriptions to events, and what was delivered.\n\n"
        "Each delivery is signed; one that fails is tried again, and can be replayed. Events that a subscription "
        "can ask for stand below with what they hold."
    ),
    "Wallet": (
        "Balance, ledger, top-ups and prices.\n\n"
        "The price of a message is held when it is accepted, and charged when it is sent; movements are entries of "
        "the ledger."
    ),
    "API keys": (
        "Credentials of programs.\n\nA token is shown once. After a rotation the former one holds for a grace."
    ),
    "Accounts": ("People who sign in, and their roles.\n\nAn account is invited; its person chooses the password."),
    "Sessions": ("Signing in and out.\n\nA session is the credential of a person; some operations take nothing else."),
    "Organization": (
        "The organization itself and its settings.\n\nTime zone, quiet hours, and the words that opt out."
    ),
    "Operators": (
        "The live state of numbers, actors, webhooks and providers; pause a number, restart an actor.\n\n"
        "What happens now, from the memory of the service: for people on call and their tools."
    ),
    "Audit": ("Who changed what.\n\nThe entries of the organization, newest first."),
    "Administration": (
        "For the installation's administrator, with `RECADO_ADMIN_TOKEN`.\n\n"
        "Organizations are made here, and get credit."
    ),
    "Callbacks": ("Called by providers, not by you.\n\nA provider signs what it posts; the adapter verifies it."),
    "Service": ("The service itself.\n\nWhether it is up and ready, its metrics, and this document."),
}
"""By name: a sentence for lists of groups, then an introduction."""
