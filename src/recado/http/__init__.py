"""The HTTP interface: aiohttp underneath, our own routes, steps and answers above. No business rule lives here."""
