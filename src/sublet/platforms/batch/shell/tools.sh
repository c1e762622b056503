# Lists the available tools, as `NAME PATH`. Arguments: how many directories to search first, these, how many modules,
# the modules to load first, then the tools' names, as `NAME=MODULE` if a module provides it. A tool that is not here,
# but may be in its module on compute nodes, is listed as `NAME module:MODULE`. A Python that is too old for the
# programs that run sessions, before 3.9, is not listed.
places=
count=$1
shift
while [ "$count" -gt 0 ]; do
    case $1 in '~/'*) places=$places$HOME/${1#??}: ;; *) places=$places$1: ;; esac
    shift
    count=$((count - 1))
done
PATH=$places$PATH
count=$1
shift
modules() {
    command -v module >/dev/null 2>&1 && return
    for file in /etc/profile.d/modules.sh /etc/profile.d/lmod.sh /usr/share/lmod/lmod/init/sh /usr/share/modules/init/sh; do
        [ -r "$file" ] && . "$file" && return
    done
}
while [ "$count" -gt 0 ]; do
    modules
    module load "$1" >&2
    shift
    count=$((count - 1))
done
for word; do
    tool=${word%%=*}
    case $word in
        python3) find_python 9 && printf 'python3 %s\n' "$python" ;;
        *=*)
            path=$(command -v "$tool" || { modules && module load "${word#*=}" >/dev/null 2>&1 && command -v "$tool"; })
            printf '%s %s\n' "$tool" "${path:-module:${word#*=}}"
            ;;
        *) path=$(command -v "$tool") && printf '%s %s\n' "$tool" "$path" ;;
    esac
done
exit 0
