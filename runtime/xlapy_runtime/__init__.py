"""What executes compiled programs: devices, buffers, channels, collectives. Knows nothing of the compiler."""
