"""Passes that say what an op means in terms of simpler ones, where that is as fast as a kernel of its own."""
"""Operations in terms of simpler ones, where a kernel of their own would not be faster."""
