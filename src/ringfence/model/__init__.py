"""The nouns of ringfence: frozen values that flow through it. No I/O; imports nothing of ours."""
