"""What is done in one go: acceptance, batches, contacts, imports, and what comes in."""
