"""Links that people follow: to a chat (origin), in messages (tracked). How a text holds them: `text_links.py`."""
