"""Pure values and rules: no input or output, no clock of its own, no event loop."""
