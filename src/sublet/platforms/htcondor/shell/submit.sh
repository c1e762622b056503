# Submits a session's jobs, once, at the access point. Arguments: the session's directory, how many tries are known to
# have submitted nothing, then the command line of condor_submit. Prints what condor_submit said, now or earlier.
#
# The lock is held until condor_submit has ended, even if its caller is gone. Exits with 75 if another try was
# interrupted before it could say what it submitted: then the queue must be asked.

cd "$1" || exit 70
tried=tried.$2
shift 2
exec 9>>lock && flock 9 || exit 70
[ -s id ] && exec cat id
mkdir "$tried" 2>/dev/null || exit 75
"$@" >id.part || exit
mv id.part id && cat id
