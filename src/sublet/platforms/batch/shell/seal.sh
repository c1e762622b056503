# Tells whether entries of the cache are as they were published. `seal` is newer than all their files, and has how many
# files and bytes they are; it is empty if an older service published them.
count_content() { # argument: the entry's directory
    find "$1/content" -type f -printf '%s\n' 2>/dev/null | { files=0 bytes=0; while read -r one; do files=$((files + 1)) bytes=$((bytes + one)); done; echo "$files $bytes"; }
}
is_unchanged() { # argument: the entry's directory; its content exists
    [ -e "$1/seal" ] || return 0
    [ -z "$(find "$1/content" -type f -newer "$1/seal" 2>/dev/null | head -n 1)" ] || return 1
    sealed=
    read -r sealed <"$1/seal" || return 0
    [ "$sealed" = "$(count_content "$1")" ]
}
