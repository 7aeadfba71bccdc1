"""SMTP: the protocol of mail servers (C29.1)."""
