"""SMS: the adapters of its gateways."""
