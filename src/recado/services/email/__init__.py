"""E-mail: what is added to one before it leaves, who opens and unsubscribes, and how senders are proven."""
