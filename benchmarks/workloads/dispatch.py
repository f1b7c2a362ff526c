"""What a call costs: programs with next to nothing to do."""

from __future__ import annotations

from typing import Any

from benchmarks import equivalents
from benchmarks.workload import Workload
from benchmarks.workloads.inputs import normal

FOUR = {"small": 4}


def ten_in_ten_out(*arrays: Any) -> Any:
    return [array + 1 for array in arrays]


WORKLOADS = [
    Workload("dispatch", "add_4_elements", lambda x, y: x + y, normal(2), FOUR, equivalent=equivalents.add),
    Workload("dispatch", "ten_in_ten_out", ten_in_ten_out, normal(10), FOUR),
]
