"""SQL by name: statements, their rows, and those that every plain record has."""
