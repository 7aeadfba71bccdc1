"""What operators are shown of what the actors hold in memory."""
