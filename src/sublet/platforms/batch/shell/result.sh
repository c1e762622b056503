# Part of a result: a plain file below the working directory, with no link on the way. What was opened is looked at, not what is
# called so, because a job that runs could put a link in its place meanwhile. Arguments: the session's directory, the path, the
# offset and the limit.
work=$(realpath -e "$1/work") || exit 1
[ -f "$work/$2" ] || exit 1
exec 3<"$work/$2"
found=$(readlink "/proc/$$/fd/3" && echo .) || exit 1
found=${found%??}
[ "$found" = "$work/$2" ] && [ -f "/proc/$$/fd/3" ] || exit 1
tail -c "+$(($3 + 1))" <&3 | head -c "$4"
