"""Programs of JAX, exported to StableHLO: what xlapy makes of them, beside what XLA computed for them."""
