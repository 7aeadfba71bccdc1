"""Who calls, what he may grant, and how often he may call."""
