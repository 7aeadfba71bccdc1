"""E-mail: messages, and the records that they are sent with."""
