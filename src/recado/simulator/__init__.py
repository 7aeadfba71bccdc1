"""A chat-app provider as a process of its own, speaking the bridge protocol (C29.3): for load tests and crash tests."""
