"""Push: how devices and messages stand, and the ids of what an app is told."""
