# For what acts on jobs by their numbers: `submitted_at`, in a session's directory, says when its scheduler took it, in seconds since
# the epoch. A scheduler that lost its last seconds gives a number again, perhaps to somebody else's job, which is a newer one.
submitted_at() { stat -c %Y id; }
