"""xlapy: a just-in-time compiler for array programs on CPUs."""
