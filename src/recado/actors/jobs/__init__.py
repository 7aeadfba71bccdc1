"""What is done now and then."""
