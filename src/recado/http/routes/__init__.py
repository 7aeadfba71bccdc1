"""Routes by resource: each module turns its dependencies into a tuple of `Route`."""
