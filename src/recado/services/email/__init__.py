"""E-mail: what is done with its records beside keeping them."""
