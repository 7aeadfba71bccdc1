"""What callers are told when something is refused or fails: problems, their texts, what is missing, who holds it."""
