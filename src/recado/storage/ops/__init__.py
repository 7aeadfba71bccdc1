"""What operators are shown of what is stored: for many numbers in one statement."""
