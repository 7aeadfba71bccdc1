"""What follows from a link that somebody opens; the recorder that opens of e-mails share."""
