"""Media: uploads, their use by numbers, copies of what came, and what is deleted when its time is over."""
