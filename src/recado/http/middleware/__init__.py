"""The steps every request goes through before its handler: one module per step, called in order by `dispatch.py`."""
