"""What looks after the process as a whole: its collector of garbage, its loop, its stacks and its end."""
