"""Push as rows: apps, devices, messages and what became of each device."""
