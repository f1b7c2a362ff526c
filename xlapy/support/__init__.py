"""What every part of the compiler shares: registries, source places, dumps, timing."""
