# The files in a session's working directory: size, time and name, with a zero byte after each, but those that were brought and are
# as they were. Argument: the session's directory.
cd "$1/work" 2>/dev/null || exit 0
list() { find . -path ./.sublet -prune -o -type f -exec stat --printf='%s %Y %n\0' {} +; }
[ -s ../brought ] || { list; exit; }
list | LC_ALL=C sort -z | LC_ALL=C comm -z -23 - ../brought
