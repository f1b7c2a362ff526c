"""What executes compiled programs: devices, buffers, channels, collectives, custom calls. Knows nothing of the compiler."""
