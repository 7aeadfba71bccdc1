"""E-mail: the records that it is sent with."""
