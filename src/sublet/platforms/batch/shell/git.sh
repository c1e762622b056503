# Fetches the files of one commit into an entry of the cache, with git and, if installed, git-lfs: `address`, `commit`,
# `folder`; `secret` is the Authorization header, which is only in git's environment and only for that host; `resolve`
# is the address of the host, if only public addresses may be used (`public`). What git can't do by itself, or not
# safely, is left to the service (`unfit`): submodules, other LFS servers, links that lead elsewhere.
share=4 beside=67108864 # bytes: before it is counted, all of it is there as a pack, as files and as large files, with indices
count() {
    sum=0
    for kib in $(du -sk work 2>/dev/null | cut -f 1); do sum=$((sum + kib * 1024)); done
    echo "$sum"
}

run_git() {
    git --git-dir=work/repository -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.symlinks=true -c credential.helper= \
        -c core.bigFileThreshold=1m -c fetch.fsckObjects=true -c fetch.fsck.zeroPaddedFilemode=ignore \
        -c fetch.fsck.missingSpaceBeforeDate=ignore -c fetch.unpackLimit=1 -c gc.auto=0 -c maintenance.auto=false \
        -c http.followRedirects=false -c http.lowSpeedLimit=1000 -c http.lowSpeedTime=30 -c http.curloptResolve="$resolve" \
        -c pack.threads=1 -c protocol.version=2 -c submodule.recurse=false -c advice.detachedHead=false "$@" </dev/null 2>complaint 3<&-
}

complain() { # fails with what git said about a server
    why=$(sed -n 's/^fatal: //p' complaint | tail -n 1)
    case $why in
        *"resolve host"* | *"onnect to"* | *"onnection refused"* | *"imed out"* | *"timeout"* | *"No route"* | *"unreachable"*) kind=unreachable ;;
        *) kind=refused ;;
    esac
    fail "$kind" "${why:-$(tail -n 1 complaint)}"
}

write_files() {
    rm -rf work/tree && mkdir work/tree || return
    run_git --work-tree=work/tree "$@" checkout --quiet --force "$commit" -- . || fail refused "$(tail -n 1 complaint)"
}

prepare() {
    number=$(git --version | sed 's/^[^0-9]*\([0-9]*\)\.\([0-9]*\).*/(\1*1000+\2)/')
    least=2018
    [ -z "$secret" ] || least=2031 # git can read settings from its environment
    [ -z "$public" ] || least=2037 # and can be told which address to connect to
    [ "$(($number))" -ge "$least" ] || fail unfit "its git is too old"
    [ "$rate" = 0 ] || fail unfit "git can't keep to its transfer_rate"
    mkdir -p work/home || exit 73
    host=${address#*://}
    export HOME="$PWD/work/home" LC_ALL=C GIT_CONFIG_NOSYSTEM=1 GIT_ATTR_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=/bin/false \
        GIT_ALLOW_PROTOCOL="${address%%:*}" GIT_NO_REPLACE_OBJECTS=1
    unset XDG_CONFIG_HOME
    [ -z "$public" ] || unset http_proxy https_proxy all_proxy HTTPS_PROXY ALL_PROXY
    [ "$largest" = 0 ] || ulimit -f "$(((largest + 67108864) / 512 + 1))"
    if [ -n "$secret" ]; then
        export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="http.${address%%:*}://${host%%/*}/.extraHeader" GIT_CONFIG_VALUE_0="$secret"
        unset secret
    fi
}

write_large_files() {
    [ -n "$(find work/tree -type f -size -3 -exec grep -l '^version https://git-lfs.github.com/spec/v1$' {} + | head -n 1)" ] || return 0
    [ -z "$public" ] || fail unfit "some of it is in Git LFS, whose addresses can't be checked there"
    [ ! -e work/tree/.lfsconfig ] || fail unfit "some of it is in Git LFS with settings of its own"
    command -v git-lfs >/dev/null || fail unfit "some of it is in Git LFS, and there is no git-lfs"
    plain=${address%/}
    write_files -c lfs.url="${plain%.git}.git/info/lfs" -c filter.lfs.smudge='git-lfs smudge -- %f' \
        -c filter.lfs.process='git-lfs filter-process' -c filter.lfs.required=true
}

check_links() { # prints the links that lead outside the folder, or not to a file
    top=$(cd "$1" && pwd -P) || return
    find "$1" -type l | while IFS= read -r link; do
        case $(readlink -f "$link") in "$top"/*) [ -f "$link" ] && continue ;; esac
        echo "$link"
    done
}

bring() {
    prepare
    run_git init --quiet --bare --template= work/repository || fail failed "$(tail -n 1 complaint)"
    ls_remote || complain
    run_git fetch --quiet --no-tags --no-recurse-submodules --depth=1 -- "$address" "$commit" || complain
    run_git ls-tree -r "$commit" >work/list || fail failed "$(tail -n 1 complaint)"
    ! grep -q '^160000 ' work/list || fail unfit "it has submodules"
    write_files
    write_large_files
    tree=work/tree${folder:+/$folder}
    [ -d "$tree" ] && [ ! -L "$tree" ] || fail unfit "there is no folder $folder in it"
    [ -z "$(find "$tree" -name '*[[:cntrl:]]*' | head -n 1)" ] || fail unfit "it has names that can't be used"
    [ -z "$(check_links "$tree")" ] || fail unfit "it has links that lead elsewhere"
    drop
    cp -rL "$tree" part || fail failed "it could not be copied: $(df -P . | tail -n 1)"
    bytes=$(find part -type f -printf '%s\n' | { sum=0; while read -r size; do sum=$((sum + size)); done; echo "$sum"; })
    if [ "$largest" != 0 ] && [ "$bytes" -gt "$largest" ]; then
        fail wrong "it has more than $largest bytes, the most that is downloaded here"
    fi
}

ls_remote() { # with a timeout: git itself would try for minutes to reach a host
    run_git ls-remote -- "$address" HEAD >/dev/null &
    asking=$! left=150
    while kill -0 "$asking" 2>/dev/null; do
        [ "$left" -gt 0 ] || { kill "$asking"; echo "fatal: it timed out" >complaint; return 1; }
        left=$((left - 1))
        sleep 0.2
    done
    wait "$asking"
}
