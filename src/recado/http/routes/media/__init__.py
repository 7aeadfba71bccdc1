"""Media: uploads, downloads, and what signed addresses open."""
