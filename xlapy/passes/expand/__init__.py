"""Operations in terms of simpler ones, where a kernel of their own would not be faster."""
