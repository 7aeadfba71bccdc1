"""What e-mail is sent with, as rows."""
