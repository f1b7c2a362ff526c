"""What passes ask about a program before they change it: read-only."""
