# Starts a session's program once on each node of its job, where programs get to them by nodes.sh; its words are the arguments.
exec sh "${0%/*}/nodes.sh" --together "$@"
