"""Settings, request limits, keys and logging of an installation (C33).

Read by the composition root and the commands only; what lies below receives plain values.
"""
