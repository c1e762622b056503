# What is in a session's working directory: of each file size, time and name, of each folder with nothing in it `d 0` and its name,
# with a zero byte after each; but what was brought and is as it was. Argument: the session's directory.
cd "$1/work" 2>/dev/null || exit 0
list() { # as in submit.sh
    find . -path ./.sublet -prune -o -type f -exec stat --printf='%s %Y %n\0' {} + -o -type d -empty ! -path . -printf 'd 0 %p\0'
}
[ -s ../brought ] || { list; exit; }
list | LC_ALL=C sort -z | LC_ALL=C comm -z -23 - ../brought
