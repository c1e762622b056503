#!/bin/sh
# How a job gets what its system keeps for many: a file transfer plug-in of HTCondor's, for two kinds of URLs,
#
#   subletdir:///scratch/kept/sha256-1234/sha256-1234    an archive, which is unpacked beside the file that HTCondor asks for
#   subletfile:///scratch/kept/sha256-1234/program       a program, by the name that it has for the job
#
#   fetch_kept -classad                     what it can do
#   fetch_kept -infile ASKED -outfile SAID  each ad of ASKED names a Url and a LocalFileName; SAID tells what became of it

if [ "$1" = -classad ]; then
    printf 'MultipleFileSupport = true\nPluginVersion = "1.0"\nPluginType = "FileTransfer"\nSupportedMethods = "subletdir,subletfile"\n'
    exit 0
fi
asked= said=
while [ $# -gt 0 ]; do
    case $1 in
        -infile) asked=$2; shift ;;
        -outfile) said=$2; shift ;;
        -upload) echo "nothing can be sent to a system this way" >&2; exit 1 ;;
    esac
    shift
done
[ -r "$asked" ] && [ -n "$said" ] || exit 1

of() { # attribute; its values, one a line
    tr ';[]' '\n\n\n' <"$asked" | sed -n "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*\"\\(.*\\)\"[[:space:]]*\$/\\1/p"
}

fetch() {
    case $url in
        subletdir:*) tar -xf "$kept" -C "${file%/*}" ;;
        *) cp "$kept" "$file" && chmod 700 "$file" ;;
    esac
}

of Url >"$said.urls"
of LocalFileName >"$said.files"
code=0
exec 3<"$said.urls" 4<"$said.files"
while IFS= read -r url <&3 && IFS= read -r file <&4; do
    kept=${url#*://}
    kept=${kept%/*}/content
    if words=$(fetch 2>&1); then
        size=$(stat -c %s "$kept")
        printf '[ TransferUrl = "%s"; TransferFileName = "%s"; TransferSuccess = true; TransferFileBytes = %s; TransferTotalBytes = %s ]\n' \
            "$url" "$file" "$size" "$size"
    else
        words=$(printf '%s' "$words" | tr '\n"\\' '   ' | cut -c 1-300)
        printf '[ TransferUrl = "%s"; TransferFileName = "%s"; TransferSuccess = false; TransferError = "%s" ]\n' "$url" "$file" "$words"
        code=1
    fi
done >"$said"
rm -f "$said.urls" "$said.files"
exit "$code"
