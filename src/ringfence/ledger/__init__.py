"""The audit ledger: append-only segments, a hash chain and tree over stored bytes, signed heads, anchors outside."""
