"""Fusion: which instructions become one kernel. `plan` decides, `build` draws the boxes."""
