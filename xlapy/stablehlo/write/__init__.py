"""From HLO to StableHLO text. Importing this package registers how each op is written."""

from xlapy.stablehlo.write import collectives, communication, custom_calls, emitters, random, windows
from xlapy.stablehlo.write.base import EMITTERS, Writer

__all__ = ["EMITTERS", "Writer", "collectives", "communication", "custom_calls", "emitters", "random", "windows"]
