"""Taking in what customers did."""
