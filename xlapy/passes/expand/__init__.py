"""Expanders: passes that write an op in terms of simpler ones, where no kernel of its own would be faster."""
