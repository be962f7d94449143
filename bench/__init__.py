"""Benchmarks: ratios against a named baseline, measured in one interleaved run. Never timed tests."""
