#!/bin/sh
# Beside the access point, for a node behind a spool: what its system keeps does not travel, but a note of where it lies, which the far
# half heeds (far_kept.py). A file transfer plug-in of HTCondor's for
#
#   subletkept:///scratch/kept/sha256-1234/sha256-1234       a file
#   subletkeptdir:///scratch/kept/sha256-1234/sha256-1234    a directory, as an archive
#
#   near_kept -classad                     what it can do
#   near_kept -infile ASKED -outfile SAID  each ad of ASKED names a Url and a LocalFileName; SAID tells what became of it

if [ "$1" = -classad ]; then
    printf 'MultipleFileSupport = true\nPluginVersion = "1.0"\nPluginType = "FileTransfer"\nSupportedMethods = "subletkept,subletkeptdir"\n'
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

of Url >"$said.urls"
of LocalFileName >"$said.files"
code=0
exec 3<"$said.urls" 4<"$said.files"
while IFS= read -r url <&3 && IFS= read -r file <&4; do
    case $url in subletkeptdir:*) kind=tree ;; *) kind=file ;; esac
    if printf 'sublet-kept 3f0d8c1e-6f0a-4b0e-9a51-6c1c8a4f7b52 %s %s\n' "$kind" "${url#*://}" >"$file"; then
        size=$(stat -c %s "$file")
        printf '[ TransferUrl = "%s"; TransferFileName = "%s"; TransferSuccess = true; TransferFileBytes = %s; TransferTotalBytes = %s ]\n' \
            "$url" "$file" "$size" "$size"
    else
        printf '[ TransferUrl = "%s"; TransferFileName = "%s"; TransferSuccess = false; TransferError = "the note could not be written" ]\n' "$url" "$file"
        code=1
    fi
done >"$said"
rm -f "$said.urls" "$said.files"
exit "$code"
