"""What every aggregate uses."""
