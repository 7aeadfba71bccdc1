"""The actor runtime: asyncio actors on pykka's hooks, supervisors, services and clocks. It knows nothing of messaging."""
