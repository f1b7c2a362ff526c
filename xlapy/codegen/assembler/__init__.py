"""Object code without LLVM, for code that is too simple to need it.

What a program consists of besides kernels is a few calls with addresses in tables. LLVM takes a millisecond for each
module, however little is in it: a tenth of the time of many programs.
"""

from xlapy.codegen.assembler.straight_code import assembled

__all__ = ["assembled"]
