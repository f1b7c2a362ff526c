"""Programs that use xlapy."""
