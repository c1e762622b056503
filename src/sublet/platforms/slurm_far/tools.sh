# The tools that are there, as `NAME PATH`. Arguments: how many modules, the modules to load first, then the tools' names.
# A Python that is too old for what Sublet sends along is not a Python.
count=$1
shift
if [ "$count" -gt 0 ] && ! command -v module >/dev/null 2>&1; then
    for file in /etc/profile.d/modules.sh /etc/profile.d/lmod.sh /usr/share/lmod/lmod/init/sh /usr/share/modules/init/sh; do
        [ -r "$file" ] && . "$file" && break
    done
fi
while [ "$count" -gt 0 ]; do
    module load "$1" >&2
    shift
    count=$((count - 1))
done
for tool; do
    case $tool in
        python3)
            for name in python3 python3.13 python3.12 python3.11 python3.10 python3.9; do
                path=$(command -v "$name") && "$path" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null && {
                    printf 'python3 %s\n' "$path"
                    break
                }
            done
            ;;
        *) path=$(command -v "$tool") && printf '%s %s\n' "$tool" "$path" ;;
    esac
done
exit 0
