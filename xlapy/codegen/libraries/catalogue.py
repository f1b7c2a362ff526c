"""The libraries that programs call, by name."""

from __future__ import annotations

from xlapy.codegen.libraries import Library
from xlapy.codegen.libraries.chain import CHAIN_LIBRARIES
from xlapy.codegen.libraries.column_maps import COLUMN_MAP_LIBRARIES
from xlapy.codegen.libraries.copies import COPY_LIBRARIES
from xlapy.codegen.libraries.depthwise import DEPTHWISE_LIBRARIES
from xlapy.codegen.libraries.depthwise_gradient import DEPTHWISE_GRADIENT_LIBRARIES
from xlapy.codegen.libraries.depthwise_planes import DEPTHWISE_PLANES_LIBRARIES
from xlapy.codegen.libraries.depthwise_planes_gradient import DEPTHWISE_PLANES_GRADIENT_LIBRARIES
from xlapy.codegen.libraries.direct import direct_library
from xlapy.codegen.libraries.fft import FFT_LIBRARIES
from xlapy.codegen.libraries.fold import FOLD_LIBRARIES
from xlapy.codegen.libraries.gemm import GEMM_LIBRARIES, LOW_GEMM_LIBRARIES, WINDOW_GEMM_LIBRARIES
from xlapy.codegen.libraries.linalg import LINALG_LIBRARIES
from xlapy.codegen.libraries.matrices import matrix_library
from xlapy.codegen.libraries.near_product import near_product_library
from xlapy.codegen.libraries.rare_functions import RARE_LIBRARIES
from xlapy.codegen.libraries.runs import RUN_LIBRARIES
from xlapy.codegen.libraries.scratch import SCRATCH_LIBRARIES
from xlapy.codegen.libraries.short_product import SHORT_PRODUCT_LIBRARIES
from xlapy.codegen.libraries.sliding import SLIDING_LIBRARIES
from xlapy.codegen.libraries.sliding_planes import PLANES_LIBRARIES
from xlapy.codegen.libraries.small_product import SMALL_PRODUCT_LIBRARIES
from xlapy.codegen.libraries.sort import SORT_LIBRARIES
from xlapy.codegen.libraries.spread import SPREAD_LIBRARIES
from xlapy.codegen.libraries.turn import TURN_LIBRARIES


class _Catalogue(dict[str, Library]):
    """Finds also those libraries of which there are too many to list."""

    def __missing__(self, name: str) -> Library:
        found = direct_library(name) or matrix_library(name) or near_product_library(name)
        if found is None:
            raise KeyError(name)
        return found


LIBRARIES = _Catalogue(
    (library.name, library)
    for group in (
        SCRATCH_LIBRARIES,
        GEMM_LIBRARIES,
        LOW_GEMM_LIBRARIES,
        WINDOW_GEMM_LIBRARIES,
        SMALL_PRODUCT_LIBRARIES,
        SHORT_PRODUCT_LIBRARIES,
        SPREAD_LIBRARIES,
        LINALG_LIBRARIES,
        SORT_LIBRARIES,
        FOLD_LIBRARIES,
        CHAIN_LIBRARIES,
        FFT_LIBRARIES,
        TURN_LIBRARIES,
        COLUMN_MAP_LIBRARIES,
        COPY_LIBRARIES,
        RUN_LIBRARIES,
        SLIDING_LIBRARIES,
        PLANES_LIBRARIES,
        DEPTHWISE_LIBRARIES,
        DEPTHWISE_GRADIENT_LIBRARIES,
        DEPTHWISE_PLANES_LIBRARIES,
        DEPTHWISE_PLANES_GRADIENT_LIBRARIES,
        RARE_LIBRARIES,
    )
    for library in group.values()
)
