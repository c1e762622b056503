# For scripts that act on jobs by number: `submitted_at`, in a session's directory, prints when its scheduler accepted
# it, in seconds since the epoch. A scheduler that lost its last seconds may reuse a number, perhaps for somebody else's
# job, which is newer.
submitted_at() { stat -c %Y id; }
