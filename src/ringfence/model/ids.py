"""Names for identifiers and units, so that a byte count is never taken for a duration."""

from typing import NewType

CallId = NewType("CallId", str)
MissionId = NewType("MissionId", str)
RuleId = NewType("RuleId", str)
Sha256 = NewType("Sha256", str)
"""Lowercase hexadecimal, 64 characters."""
Bytes = NewType("Bytes", int)
Millis = NewType("Millis", int)
Micros = NewType("Micros", int)
"""Instants are microseconds since the Unix epoch, UTC; durations are microseconds."""
