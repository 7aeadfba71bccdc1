"""SES: a hosted service that sends e-mail, and reports through topics of SNS (C29.1)."""
