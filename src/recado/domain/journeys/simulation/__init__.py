"""The dry run of a journey: its steps on virtual time, under assumptions, for many contacts at once (C9.17)."""
