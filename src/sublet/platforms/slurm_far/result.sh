# Whether a result can be read: a plain file below the working directory, with no link on the way. Arguments: the session's
# directory and the path.
work=$(realpath -e "$1/work") || exit 1
found=$(realpath -e "$1/work/$2" && echo .) || exit 1
found=${found%??}
[ "$found" = "$work/$2" ] && [ -f "$found" ]
