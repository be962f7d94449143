"""Network: capture, DNS, proxy entries, presets, credentials. Never decides, it asks."""
