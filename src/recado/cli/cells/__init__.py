"""Commands of several installations: the map of cells, moves between them, and the entry."""
