"""E-mail's adapters: so far, how senders prove to be their organization's."""
