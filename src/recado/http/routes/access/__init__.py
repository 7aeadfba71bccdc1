"""Who may do what: organizations, accounts, sessions, API keys, the audit."""
