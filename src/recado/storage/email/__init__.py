"""What e-mail is sent with, as rows; and when a message was opened and clicked in first."""
