# For scripts that need a Python on this host: `find_python` sets `python` to the path of one that is new enough, or
# fails. Our own programs need 3.8; an argument 9 asks for 3.9. `python3` comes first, then the newest `python3.N`.
find_python() {
    least=${1:-8} minor=40 name=python3
    while [ "$minor" -ge "$least" ]; do
        python=$(command -v "$name") && "$python" -c "import sys; sys.exit(sys.version_info < (3, $least))" 2>/dev/null && return
        minor=$((minor - 1))
        name=python3.$minor
    done
    return 1
}
