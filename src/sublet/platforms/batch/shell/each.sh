# Starts a session's program, given by the arguments, once on each node of its job, for schedulers that use nodes.sh.
exec sh "${0%/*}/nodes.sh" --together "$@"
