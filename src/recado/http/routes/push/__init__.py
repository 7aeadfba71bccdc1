"""Push: apps, devices, messages."""
