"""A pilot in two halves, for nodes that can't reach the access point.

    near_half (per job) - relay (per lease) == one ssh exec == agent (login host) - spool - far_half (per node)

`agent` and `far_half` are sent as text to machines with an older Python: they use nothing newer than Python 3.6, and
import only the standard library and the modules that `travel` puts before them in the same text.
"""
