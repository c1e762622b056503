# Prints part of a result: a regular file below the working directory, with no link on the way. The opened file is
# checked, not its path, because a running job could replace that with a link meanwhile. Arguments: the session's
# directory, the path, the offset and the limit.
work=$(realpath -e "$1/work") || exit 1
[ -f "$work/$2" ] || exit 1
exec 3<"$work/$2"
found=$(readlink "/proc/$$/fd/3" && echo .) || exit 1
found=${found%??}
[ "$found" = "$work/$2" ] && [ -f "/proc/$$/fd/3" ] || exit 1
tail -c "+$(($3 + 1))" <&3 | head -c "$4"
