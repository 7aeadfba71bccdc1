"""E-mail's adapters: how an e-mail is handed over, and how senders prove to be their organization's."""
