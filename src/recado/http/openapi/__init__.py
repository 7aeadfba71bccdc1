"""The OpenAPI document: made from the table of routes, with its words, examples and samples."""
