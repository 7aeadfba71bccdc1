"""Push: registrations in batches, audiences, and what departures come to."""
