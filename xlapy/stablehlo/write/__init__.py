"""From HLO to StableHLO text. Importing this package registers how each op is written."""

from xlapy.stablehlo.write import collectives, emitters, random
from xlapy.stablehlo.write.base import EMITTERS, Writer

__all__ = ["EMITTERS", "Writer", "collectives", "emitters", "random"]
from xlapy.stablehlo.write import windows

__all__ = ["EMITTERS", "Writer", "emitters", "windows"]
