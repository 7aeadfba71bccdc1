"""Push: lanes that let notifications leave, block by block."""
