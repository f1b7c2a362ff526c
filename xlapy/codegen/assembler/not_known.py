"""What is said of code that is not assembled here."""


class NotKnown(Exception):
    """There is something in the code that is LLVM's."""


class TooManyVectors(NotKnown):
    """More of them than registers, at once."""
