# Lists a session's working directory: the size, time and name of each file, and `d 0` and the name of each empty
# folder, each followed by a zero byte; staged files that haven't changed are left out. Argument: the session's
# directory.
cd "$1/work" 2>/dev/null || exit 0
list() { # as in submit.sh
    find . -path ./.sublet -prune -o -type f -exec stat --printf='%s %Y %n\0' {} + -o -type d -empty ! -path . -printf 'd 0 %p\0'
}
[ -s ../brought ] || { list; exit; }
list | LC_ALL=C sort -z | LC_ALL=C comm -z -23 - ../brought
