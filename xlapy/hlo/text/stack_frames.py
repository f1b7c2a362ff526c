"""The tables of source places that newer dumps put behind the module's heading.

    FileNames           FileLocations                      StackFrames
    1 "model.py"        1 {file_name_id=1 line=41 ...}     1 {file_location_id=1 parent_frame_id=0}

An instruction's metadata then holds only `stack_frame_id=1`; here it gets its file and line back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from xlapy.hlo.attributes import OpMetadata
from xlapy.hlo.text.lexer import SPACE, Lexer

_TABLE = re.compile(rf"(FileNames|FunctionNames|FileLocations|StackFrames)\b{SPACE}")
_NUMBER = re.compile(rf"(\d++){SPACE}(?=[{{\"])")


@dataclass(slots=True)
class StackFrames:
    """Frame -> location -> file and line."""

    files: dict[int, str] = field(default_factory=dict)
    locations: dict[int, dict[str, int]] = field(default_factory=dict)
    frames: dict[int, dict[str, int]] = field(default_factory=dict)

    def resolve(self, metadata: OpMetadata) -> OpMetadata:
        """The metadata with the file and line of its frame, if it names a known one."""
        number = next((value for key, value in metadata.extra if key == "stack_frame_id"), "")
        if not number.isdecimal() or int(number) not in self.frames:
            return metadata
        location = self.locations.get(self.frames[int(number)].get("file_location_id", 0), {})
        return replace(
            metadata,
            source_file=metadata.source_file or self.files.get(location.get("file_name_id", 0), ""),
            source_line=metadata.source_line or location.get("line", 0),
            extra=tuple((key, value) for key, value in metadata.extra if key != "stack_frame_id"),
        )


def read_stack_frames(lexer: Lexer) -> StackFrames:
    """Reads whichever of the tables stand at the cursor."""
    result = StackFrames()
    records = {"FileLocations": result.locations, "StackFrames": result.frames}
    while (heading := lexer.take(_TABLE)) is not None:
        while (number := lexer.take(_NUMBER)) is not None:
            if heading[1] in records:
                records[heading[1]][int(number[1])] = _record(lexer)
            else:
                text = lexer.string()
                if heading[1] == "FileNames":
                    result.files[int(number[1])] = text
    return result


def _record(lexer: Lexer) -> dict[str, int]:
    """`{line=41 column=3}`"""
    values = {}
    lexer.expect("{")
    while not lexer.accept("}"):
        key = lexer.key()
        values[key] = lexer.integer()
        lexer.accept(",")
    return values
