"""What messages leave from."""
