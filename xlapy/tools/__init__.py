"""The `xlapy` command: one file per subcommand."""
