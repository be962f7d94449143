"""The gauntlet: small attacks, each with a victim planted outside the box and judged by the effect seen from outside.

``attacks/FAMILY/NAME.py`` or ``.sh`` is one attack with a header that says what it tries and how it is judged. This
package plants the victims, runs each attack once without a fence (the control) and once inside, and compares. It acts
only on what it planted: a home, repositories, processes and loopback servers of its own, in a network of its own.
"""
