"""E-mail: what one is made of, what it leaves from, who gets none. How messages go: `domain/channels`."""
