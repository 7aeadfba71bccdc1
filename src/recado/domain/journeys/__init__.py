"""Automated paths of contacts: steps, and what one execution does next."""
