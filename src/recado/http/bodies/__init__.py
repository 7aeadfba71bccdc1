"""From bytes to checked values: bodies and query strings, large ones read in processes of their own."""
