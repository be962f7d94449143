"""The audit ledger: canonical records, chain, tree, checkpoints, segments, index, verification, retention, export."""
