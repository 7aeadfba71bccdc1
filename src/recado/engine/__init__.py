"""The actor runtime: asyncio actors on pykka's hooks, supervisors, services, clocks. It knows nothing of messaging."""
