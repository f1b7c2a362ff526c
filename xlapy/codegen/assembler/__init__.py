"""Object code without LLVM, for code that is too simple to need it.

What a program consists of besides kernels is a few calls with addresses in tables, perhaps in loops. LLVM takes a
millisecond for each module, however little is in it: a tenth of the time of many programs.
"""

from xlapy.codegen.assembler.module import assembled

__all__ = ["assembled"]
