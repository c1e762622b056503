# The files in a session's working directory: size, time and name, with a zero byte after each. Argument: the session's directory.
cd "$1/work" 2>/dev/null || exit 0
find . -path ./.sublet -prune -o -type f -exec stat --printf='%s %Y %n\0' {} +
