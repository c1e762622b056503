# Submits a session's jobs, once, at the access point. Arguments: the session's directory, how many tries are known to have
# led to nothing, then the words of condor_submit. Prints what condor_submit said, now or earlier.
#
# The lock is held until condor_submit has ended, whatever becomes of who asked for it. Exits with 75 if another try was cut off
# before it could say what it submitted: then the queue has to be asked.

cd "$1" || exit 70
tried=tried.$2
shift 2
exec 9>>lock && flock 9 || exit 70
[ -s id ] && exec cat id
mkdir "$tried" 2>/dev/null || exit 75
"$@" >id.part || exit
mv id.part id && cat id
