# Prints the available tools as `NAME<tab>VERSION`, or with their path. Arguments: pairs of a tool's name and the module
# that provides it; an empty module means none.
for file in /etc/profile.d/modules.sh /etc/profile.d/lmod.sh /usr/share/lmod/lmod/init/sh /usr/share/modules/init/sh; do
    command -v module >/dev/null 2>&1 && break
    [ -r "$file" ] && . "$file" >/dev/null 2>&1
done
if command -v module >/dev/null 2>&1; then
    if [ -n "$LMOD_VERSION" ]; then
        printf 'modules\tLmod %s\n' "$LMOD_VERSION"
    else
        printf 'modules\tEnvironment Modules\n'
    fi
fi
while [ $# -gt 1 ]; do
    (
        [ -z "$2" ] || module load "$2" >/dev/null 2>&1
        path=$(command -v "$1") || exit
        said=$(timeout 10 "$path" --version </dev/null 2>/dev/null | tr '\t' ' ' | sed -n 1p)
        printf '%s\t%s\n' "$1" "${said:-$path}"
    )
    shift 2
done
path=$(command -v condor_version) && printf 'htcondor\t%s\n' "$("$path" </dev/null 2>/dev/null | sed -n 's/^\$CondorVersion: *\([^ ]*\).*/\1/p')"
exit 0
