"""Python's capsules, in which C libraries hand out addresses."""

from __future__ import annotations

import ctypes

_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
keep_for_good = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
"""Lets an object live as long as the process, for what may look at it after everything else has ended."""


def new_capsule(address: int, name: bytes) -> object:
    """A capsule of what is at the address, which must live as long; so must the name."""
    return _new_capsule(address, name, None)


def is_capsule(value: object) -> bool:
    return type(value).__name__ == "PyCapsule"


def capsule_name(capsule: object) -> str:
    """What a capsule calls its content; empty if it has no name."""
    return (_name_of(capsule) or b"").decode()


def capsule_address(capsule: object) -> int:
    """The address in a capsule, whatever it calls it."""
    return _pointer_of(capsule, _name_of(capsule)) or 0
