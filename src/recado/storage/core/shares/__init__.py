"""What callers share: places, memory and threads, and for whom the database works."""
