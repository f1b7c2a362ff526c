"""The steps of buffer assignment: `walk` finds buffers and when they are needed, `merging` makes one of several, and
`arena` gives the rest their offsets."""
