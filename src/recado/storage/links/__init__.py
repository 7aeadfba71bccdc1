"""Links as rows, and what is counted of them."""
