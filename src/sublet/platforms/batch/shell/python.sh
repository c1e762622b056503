# For scripts that run one of our programs on this host: `find_python` sets `python` to one that is new enough, or
# fails.
find_python() {
    for name in python3 python3.13 python3.12 python3.11 python3.10 python3.9; do
        python=$(command -v "$name") && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null && return
    done
    return 1
}
