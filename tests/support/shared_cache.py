"""The cache on disk that programs use, for libraries that tests link by themselves."""

from __future__ import annotations

from xlapy.codegen.object_cache import ObjectCache
from xlapy.native import object_cache
from xlapy.options import environment


def shared_cache() -> ObjectCache:
    """What one worker of the suite compiled, others find, and so do their programs. Edited sources are another version,
    whose libraries are made anew."""
    return object_cache(environment())
