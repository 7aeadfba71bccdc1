"""What is counted for operators."""
