"""What journeys do over time."""
