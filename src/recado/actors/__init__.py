"""What the service does over time: accepting, pacing, sending, receipts."""
